import { defineHandlers, type Subject } from '../subject.ts';
import { retentionJob } from './jobs.ts';
import { migrations } from './migrations.ts';

export const channels: Subject = {
  name: 'channels',
  capability: 'channel.host.v1',
  migrations,
  handlers: defineHandlers({}),
  jobs: [retentionJob],
};
