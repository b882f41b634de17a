/** A message of another relay for an account at home here, as one small write (07 §C8). */
import type { AccountFacts } from '../known-accounts.ts';
import type { AppendKind } from '../storage/types.ts';
import { appendNow, type StoredMessage } from './append.ts';
import { insertReceived, priorResultsOf, type ReceivedResult } from './received-store.ts';
import { certificateDeadline } from './rules.ts';
import { type MessageKey, storeCertificate, storeEnvelope } from './store.ts';

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
}

/**
 * Declines a message of which any method has a result, and one whose facts have changed; returns the
 * record's sequence. `apply` throws `state_conflict` if the timeline has no sequence left.
 *
 * On PostgreSQL, the general way does it.
 */
export const receivedMessages: AppendKind<ReceivedMessage, number> = {
  name: 'messages.received',
  aggregates: ({ key, facts }) => [`account:${key.sender}`, `account:${facts.account}`],
  apply(tx, message) {
    const { key, result, envelope, certificate, facts, keepUntil } = message;
    if (!message.isCurrent(facts)) return undefined;
    if (tx.get(...priorResultsOf(key)) !== undefined) return undefined;
    tx.run(...storeEnvelope(envelope, keepUntil));
    tx.run(...storeCertificate(certificate, certificateDeadline(keepUntil)));
    const sequence = appendNow(tx, {
      account: facts.account,
      ...{ acceptedAt: result.acceptedAt, keepUntil, boxes: message.boxes },
      ...{ envelopeId: envelope.id, certificateId: certificate.id, bytes: envelope.bytes },
    });
    tx.run(...insertReceived(key, result));
    return sequence;
  },
  batch: undefined,
};
