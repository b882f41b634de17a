import type { HandlersOf } from '../dispatch/handler.ts';
import type { StoredModule } from '../dispatch/module.ts';
import { deliveryJob } from './delivery.ts';
import { retentionJob } from './jobs.ts';
import { messageDeliveryStatus } from './methods/message.delivery.status.ts';
import { messageSend } from './methods/message.send.ts';
import { messageTimelineSync } from './methods/message.timeline.sync.ts';
import { migrations } from './migrations.ts';
import { messageDeliver } from './relay-methods/message.deliver.ts';
import { restored } from './restored.ts';
import { timelineResync } from './resync.ts';
import { waitingMailJob } from './waiting-mail-job.ts';

export { endDeliveries, endRecords } from './account-end-store.ts';
export { releaseDeliveries, wakeDestination } from './delivery.ts';
export type { MessageKey } from './store.ts';
export {
  readDestinations,
  readWaitingMail,
  readWaitingMessages,
  type WaitingMail,
} from './waiting-mail.ts';

export const messages: StoredModule = {
  name: 'messages',
  migrations,
  restored,
  handlers: {
    'message.send': messageSend,
    'message.delivery.status': messageDeliveryStatus,
    'message.timeline.sync': messageTimelineSync,
  } satisfies HandlersOf<'message'>,
  relayHandlers: { 'message.deliver': messageDeliver },
  jobs: [deliveryJob, retentionJob, waitingMailJob],
  accountResync: timelineResync,
};
