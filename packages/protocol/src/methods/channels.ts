import {
  ChannelClose,
  ChannelDescriptor,
  ChannelId,
  ChannelPage,
  ChannelPost,
  ChannelPostDelete,
  ChannelPostEdit,
  ChannelPostReport,
  ChannelResolution,
  ChannelSubscription,
  TargetSequence,
} from '../channels/index.ts';
import { limits } from '../limits.ts';
import { Counter, Type } from '../schema.ts';
import { defineMethod, type NotificationDefinition } from './definition.ts';

const module = { session: 'device', capability: 'channel.host.v1' } as const;
/** Whose parameters come back as `result.events[…].payload`. */
const event = { ...module, depth: limits.jsonDepth - 4 } as const;

/** The methods of chapter 06, section 8, by name. */
export const channelMethods = {
  'channel.create': defineMethod({
    ...event,
    name: 'channel.create',
    http: ['POST'],
    params: ChannelDescriptor,
    result: null,
    source: '06 §8.2',
  }),
  'channel.resolve': defineMethod({
    ...module,
    name: 'channel.resolve',
    http: ['GET'],
    params: Type.Object({ channel_id: ChannelId, revision: Type.Optional(Counter) }),
    result: ChannelResolution,
    source: '06 §8.3',
  }),
  'channel.update': defineMethod({
    ...event,
    name: 'channel.update',
    http: ['PUT'],
    params: ChannelDescriptor,
    result: null,
    source: '06 §8.4',
  }),
  'channel.close': defineMethod({
    ...module,
    name: 'channel.close',
    http: ['DELETE'],
    params: ChannelClose,
    result: null,
    source: '06 §8.5',
  }),
  'channel.post': defineMethod({
    ...event,
    name: 'channel.post',
    http: ['PUT'],
    params: ChannelPost,
    result: Type.Object({ sequence: TargetSequence }),
    source: '06 §8.7',
  }),
  'channel.post.edit': defineMethod({
    ...event,
    name: 'channel.post.edit',
    http: ['PATCH'],
    params: ChannelPostEdit,
    result: null,
    nullable: ['body', 'attachments'],
    nullableUnknown: true,
    source: '06 §8.8',
  }),
  'channel.post.delete': defineMethod({
    ...event,
    name: 'channel.post.delete',
    http: ['DELETE'],
    params: ChannelPostDelete,
    result: null,
    source: '06 §8.9',
  }),
  'channel.post.report': defineMethod({
    ...module,
    name: 'channel.post.report',
    http: ['PUT'],
    params: ChannelPostReport,
    result: null,
    source: '06 §8.10',
  }),
  'channel.read': defineMethod({
    ...module,
    name: 'channel.read',
    http: ['GET'],
    params: Type.Object({
      channel_id: ChannelId,
      before: Type.Optional(Counter),
      after: Type.Optional(Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    }),
    result: ChannelPage,
    page: 'sequence',
    source: '06 §8.11',
  }),
  'channel.subscribe': defineMethod({
    ...module,
    name: 'channel.subscribe',
    http: [],
    params: ChannelSubscription,
    result: null,
    source: '06 §9.1',
  }),
};

/** The notification of chapter 06, section 9.2, by name. */
export const channelNotifications = {
  'channel.timeline.changed': {
    name: 'channel.timeline.changed',
    params: Type.Object({ channel_id: ChannelId, head: Counter }),
    capability: 'channel.host.v1',
    source: '06 §9.2',
  },
} as const satisfies Record<string, NotificationDefinition>;
