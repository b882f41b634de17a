/** A sent message between accounts at home here, as one small write (04 section 12). */
import type { AppendKind, SyncWriter } from '../storage/types.ts';
import { appendNow, type Sequences } from './append.ts';
import { messageBatch } from './message-batch.ts';
import type { SentMessage } from './sent-message.ts';
import {
  insertResultUnlessDelivered,
  type NewRecord,
  storeCertificate,
  storeEnvelope,
} from './store.ts';

/**
 * Declines a message of which any method has a result, and one whose facts have changed.
 * `apply` throws `state_conflict` if a timeline has no sequence left.
 */
export const sentMessages: AppendKind<SentMessage, Sequences> = {
  name: 'messages',
  aggregates: ({ facts }) => facts.map(({ account }) => `account:${account}` as const),
  apply(tx, message) {
    const { key, result, keepUntil, envelope, certificate, certificateKeepUntil } = message;
    if (!message.facts.every(message.isCurrent)) return undefined;
    // Its key is what tells a repeat.
    if (tx.run(...insertResultUnlessDelivered(key, result)) === 0) return undefined;
    tx.run(...storeEnvelope(envelope, keepUntil));
    if (certificateKeepUntil !== undefined) {
      tx.run(...storeCertificate(certificate, certificateKeepUntil));
    }
    return message.records.map((record) => append(tx, message, record));
  },
  batch: messageBatch,
};

function append(
  tx: SyncWriter,
  { envelope, certificate, keepUntil, result: { acceptedAt } }: SentMessage,
  { account, boxes }: Pick<NewRecord, 'account' | 'boxes'>,
): number {
  return appendNow(tx, {
    ...{ account, acceptedAt, keepUntil, boxes },
    envelopeId: envelope.id,
    certificateId: certificate.id,
    bytes: envelope.bytes,
  });
}
