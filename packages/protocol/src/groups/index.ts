export * from './access.ts';
export * from './bodies.ts';
export * from './boxes.ts';
export * from './chain/index.ts';
export * from './content.ts';
export * from './events.ts';
export * from './fields.ts';
export * from './ids.ts';
export {
  extendKeyHistory,
  type GroupEpochKeys,
  type GroupKeyHistory,
  GroupKeyPeriod,
  keysOfEpoch,
} from './key-history.ts';
export * from './key-sync.ts';
export * from './management-hash.ts';
export * from './message.ts';
export * from './nicknames.ts';
export type { GroupPageRequest } from './paging.ts';
export * from './permissions.ts';
export * from './policy.ts';
export * from './projection.ts';
export * from './records.ts';
export * from './requests.ts';
export * from './responses.ts';
export * from './rotation.ts';
export * from './secrets.ts';
export * from './state.ts';
export * from './sync.ts';
