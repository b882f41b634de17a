import { defineHandlers, type Subject } from '../subject.ts';
import { deliveryJob } from './delivery.ts';
import { retentionJob } from './jobs.ts';
import { messageDeliveryStatus } from './methods/message.delivery.status.ts';
import { messageSend } from './methods/message.send.ts';
import { messageTimelineSync } from './methods/message.timeline.sync.ts';
import { migrations } from './migrations.ts';
import { timelineNews } from './news.ts';

export const messages: Subject = {
  name: 'messages',
  migrations,
  handlers: defineHandlers({
    'message.send': messageSend,
    'message.delivery.status': messageDeliveryStatus,
    'message.timeline.sync': messageTimelineSync,
  }),
  jobs: [deliveryJob, retentionJob],
  news: timelineNews,
};
