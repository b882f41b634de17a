/** Messages that have left, or are about to, until their fate is known (04 §15). */
import type { SendRequest } from '@posthouse/protocol';
import type { ContactRow } from '../contacts/contact-rows.ts';
import { Collection } from '../store/collection.ts';
import type { PendingTask } from '../sync/tasks.ts';

/** Why a message is in the outbox, and so what its fate means. */
export type Purpose =
  | { readonly kind: 'direct' }
  /** The contact as it was and as the consent made it, for a consent that does not arrive. */
  | { readonly kind: 'consent'; readonly before: ContactRow; readonly after: ContactRow }
  /** What is owed again where the message must be made anew. */
  | { readonly kind: 'duty'; readonly duties: readonly PendingTask[] };

/** A message that has left, or is about to; kept until its fate is known. By message ID. */
export interface OutboxRow {
  /** Sent unchanged, as often as it takes (04 §15.1). */
  readonly params: SendRequest;
  /** The one relay it may be sent to. */
  readonly relayId: string;
  readonly purpose: Purpose;
  readonly accepted: boolean;
}
export const outbox = new Collection<OutboxRow>('outbox');
