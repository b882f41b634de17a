import type { AccountFacts } from '../known-accounts.ts';
import type { StoredMessage } from './append.ts';
import type { ReceivedResult } from './received-store.ts';
import type { MessageKey } from './store.ts';

/** A message that is received as long as facts of its recipient hold: what is to be written. */
export interface ReceivedMessage extends StoredMessage {
  readonly key: MessageKey;
  readonly result: ReceivedResult & { readonly keepUntil: number };
  /** The recipient is at home here at `result.acceptedAt`. */
  readonly facts: AccountFacts;
  /** Tells whether the facts hold for this process. */
  readonly isCurrent: (facts: AccountFacts) => boolean;
  /** Canonical JSON of each valid device's box, by device ID. */
  readonly boxes: ReadonlyMap<string, string>;
  /** Deadline of the record and the envelope, Unix seconds. */
  readonly keepUntil: number;
  readonly certificateKeepUntil: number;
}
