/** A message of another relay for an account at home here, as one small write (07 §C8). */
import type { AppendKind } from '../storage/types.ts';
import { appendNow, type Sequences } from './append.ts';
import { messageBatch } from './message-batch.ts';
import type { ReceivedMessage } from './received-message.ts';
import { insertReceived, priorResultsOf } from './received-store.ts';
import { storeCertificate, storeEnvelope } from './store.ts';

/**
 * Declines a message of which any method has a result, and one whose facts have changed; its output is the
 * record's sequence, as {@link Sequences}. `apply` throws `state_conflict` if the timeline has no sequence left.
 */
export const receivedMessages: AppendKind<ReceivedMessage, Sequences> = {
  name: 'messages',
  aggregates: ({ key, facts }) => [`account:${key.sender}`, `account:${facts.account}`],
  apply(tx, message) {
    const { key, result, envelope, certificate, facts, keepUntil } = message;
    if (!message.isCurrent(facts)) return undefined;
    if (tx.get(...priorResultsOf(key)) !== undefined) return undefined;
    tx.run(...storeEnvelope(envelope, keepUntil));
    tx.run(...storeCertificate(certificate, message.certificateKeepUntil));
    const sequence = appendNow(tx, {
      account: facts.account,
      ...{ acceptedAt: result.acceptedAt, keepUntil, boxes: message.boxes },
      ...{ envelopeId: envelope.id, certificateId: certificate.id, bytes: envelope.bytes },
    });
    tx.run(...insertReceived(key, result));
    return [sequence];
  },
  batch: messageBatch,
};
