import type { AccountFacts } from '../known-accounts.ts';
import type { StoredMessage } from './append.ts';
import type { MessageKey, NewRecord, NewResult } from './store.ts';

/** A message that is accepted as long as facts of its accounts hold: what is to be written. */
export interface SentMessage extends StoredMessage {
  readonly key: MessageKey;
  /** Its status is `target_accepted`, and `received` the digest of what the recipient receives. */
  readonly result: NewResult;
  /**
   * What the acceptance relies on, sorted by account, without repeats: in each the account is at
   * home here at `result.acceptedAt`. `routeRevision`, `stateRevision` and `isPublic` decide
   * whether it holds for a database that other processes write too; the route may also have come
   * into conflict or been given up since.
   */
  readonly facts: readonly AccountFacts[];
  /** Tells whether the facts hold for this process. */
  readonly isCurrent: (facts: AccountFacts) => boolean;
  /** Unix seconds; `undefined` if the certificate is stored for long enough. */
  readonly certificateKeepUntil: number | undefined;
  /** Each timeline's record, the sender's first; its boxes are those of valid devices. */
  readonly records: readonly Pick<NewRecord, 'account' | 'boxes'>[];
  /** Deadline of the records and the envelope, Unix seconds. */
  readonly keepUntil: number;
}
