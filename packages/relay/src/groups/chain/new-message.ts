import type { Caller } from '../../accounts/index.ts';
import type { AggregateKey } from '../../storage/types.ts';
import type { SentKey } from './event-store.ts';
import type { StoredGroup } from './group-store.ts';

/** A message that was verified, to be accepted as long as its sender may send. */
export interface NewGroupMessage {
  readonly groupId: string;
  readonly key: SentKey;
  readonly caller: Caller;
  /** The epoch that the message names. */
  readonly epoch: number;
  /** Canonical JSON of the envelope. */
  readonly text: string;
  /** Digest of the text. */
  readonly digest: string;
  /** When it is accepted, and until when it is stored; Unix seconds. */
  readonly now: number;
  readonly keepUntil: number;
  /** `limits.groupStoredBytes`: a group with as many gets no message. */
  readonly mostBytes: number;
}

/** The group after the message. */
export type AppendedGroup = Pick<StoredGroup, 'group_id' | 'sequence' | 'access_ended'>;

/** A message ID of an account has one result, whatever group the message is for. */
export function messageKey({ account, messageId }: SentKey): AggregateKey {
  return `group-message:${account}:${messageId}`;
}
