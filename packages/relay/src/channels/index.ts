import type { HandlersOf } from '../dispatch/handler.ts';
import type { StoredModule } from '../dispatch/module.ts';
import { retentionJob } from './jobs.ts';
import { channelClose } from './methods/channel.close.ts';
import { channelCreate } from './methods/channel.create.ts';
import { channelPostDelete } from './methods/channel.post.delete.ts';
import { channelPostEdit } from './methods/channel.post.edit.ts';
import { channelPostReport } from './methods/channel.post.report.ts';
import { channelPost } from './methods/channel.post.ts';
import { channelRead } from './methods/channel.read.ts';
import { channelResolve } from './methods/channel.resolve.ts';
import { channelSubscribe } from './methods/channel.subscribe.ts';
import { channelUpdate } from './methods/channel.update.ts';
import { migrations } from './migrations.ts';
import { restored } from './restored.ts';
import { channelResync } from './resync.ts';

export { deleteReportsBy, type ListedReport, lastReport } from './moderation/report-store.ts';
export {
  dismissReports,
  listReports,
  type ReportedPost,
  readReportedPost,
} from './moderation/reports.ts';
export { lastWithheld, type WithheldPost } from './moderation/withheld-store.ts';
export { listWithheld, restorePost, withholdPost } from './moderation/withhold.ts';

export const channels: StoredModule = {
  name: 'channels',
  capability: 'channel.host.v1',
  migrations,
  restored,
  handlers: {
    'channel.create': channelCreate,
    'channel.resolve': channelResolve,
    'channel.update': channelUpdate,
    'channel.close': channelClose,
    'channel.post': channelPost,
    'channel.post.edit': channelPostEdit,
    'channel.post.delete': channelPostDelete,
    'channel.post.report': channelPostReport,
    'channel.read': channelRead,
    'channel.subscribe': channelSubscribe,
  } satisfies HandlersOf<'channel'>,
  jobs: [retentionJob],
  subscriptionResync: channelResync,
};
