/** A sent message between accounts at home here, as one small write (04 section 12). */
import type { AccountFacts } from '../known-accounts.ts';
import type { AppendKind, SyncWriter } from '../storage/types.ts';
import { requireSequence, type StoredMessage } from './append.ts';
import { readReceived } from './received-store.ts';
import {
  assignSequence,
  insertRecord,
  insertResult,
  type MessageKey,
  type NewRecord,
  type NewResult,
  storeCertificate,
  storeEnvelope,
} from './store.ts';

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

/** The sequence of each record, in their order. */
export type SentSequences = readonly number[];

/**
 * Declines a message of which any method has a result, and one whose facts have changed.
 * `apply` throws `state_conflict` if a timeline has no sequence left.
 */
export const sentMessages: AppendKind<SentMessage, SentSequences> = {
  name: 'messages.sent',
  aggregates: ({ facts }) => facts.map(({ account }) => `account:${account}` as const),
  apply(tx, message) {
    const { key, result, keepUntil, envelope, certificate, certificateKeepUntil } = message;
    if (!message.facts.every(message.isCurrent)) return undefined;
    if (tx.get(...readReceived(key)) !== undefined) return undefined;
    // Its key is what tells a repeat.
    if (tx.run(...insertResult(key, result)) === 0) return undefined;
    tx.run(...storeEnvelope(envelope, keepUntil));
    if (certificateKeepUntil !== undefined) {
      tx.run(...storeCertificate(certificate, certificateKeepUntil));
    }
    return message.records.map((record) => append(tx, message, record));
  },
  batch: undefined,
};

function append(
  tx: SyncWriter,
  { envelope, certificate, keepUntil, result: { acceptedAt } }: SentMessage,
  { account, boxes }: Pick<NewRecord, 'account' | 'boxes'>,
): number {
  const sequence = requireSequence(tx.get(...assignSequence(account)));
  const record = {
    ...{ account, sequence, acceptedAt, keepUntil, boxes },
    envelopeId: envelope.id,
    certificateId: certificate.id,
    bytes: envelope.bytes,
  };
  for (const statement of insertRecord(record)) tx.run(...statement);
  return sequence;
}
