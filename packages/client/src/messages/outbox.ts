/** Messages that are sent, or about to be, until their outcome is known (04 §15). */
import type { SendRequest } from '@posthouse/protocol';
import type { ContactRow } from '../contacts/contact-rows.ts';
import { Collection } from '../store/collection.ts';
import type { PendingTask } from '../sync/tasks.ts';

/** Why a message is in the outbox; decides what a failure undoes. Member names are stored. */
export type Purpose =
  | { readonly kind: 'direct' }
  /** The contact before and after the consent, to undo a consent that is not delivered. */
  | { readonly kind: 'consent'; readonly before: ContactRow; readonly after: ContactRow }
  /** Tasks that are enqueued again if the message must be made again. */
  | { readonly kind: 'duty'; readonly duties: readonly PendingTask[] };

/** A sealed message whose outcome is not known yet, by message ID. */
export interface OutboxRow {
  /** Sent unchanged with every retry (04 §15.1). */
  readonly params: SendRequest;
  /** The only relay it may be sent to. */
  readonly relayId: string;
  readonly purpose: Purpose;
  readonly accepted: boolean;
  /** When the relay said, before this was sealed, that it was restored; Unix seconds, 0 for never. */
  readonly restoredAt?: number;
  /** Key of its row in the queue, until it has an answer. */
  readonly place?: string;
  /** The ID before it was sealed for the second time; there is no third time (04 §15.1). */
  readonly first_id?: string;
}
export const outbox = new Collection<OutboxRow>('outbox');
