/** Finds out what the home relay knows of a message that it refuses for a reason that says nothing of it. */
import type { DeliveryStatus } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { checkedStatus, isRefusal, leavesOpen, messageRow } from '../taken.ts';
import type { OutboxRow } from './outbox.ts';

/**
 * Asks the relay what it knows of a message that it takes no more (04 §14.3).
 * @returns `accepted` if it does not say, but gave it back in the timeline; `undefined` if it is not known
 * @throws RelayUnreachable, RelayMisbehaviour; RelayRefused for a temporary reason
 */
export async function knownStatus(
  core: AccountCore,
  { params, relayId }: OutboxRow,
  signal: AbortSignal,
): Promise<DeliveryStatus | 'accepted' | undefined> {
  const method = 'message.delivery.status';
  const { from, message_id } = params.envelope;
  try {
    const answer = await core.relay(relayId).call(method, { message_id }, { signal });
    return checkedStatus(answer, method);
  } catch (error) {
    if (!isRefusal(error) || leavesOpen(error)) throw error;
    const row = await core.store.read((tx) => messageRow(tx, { from, message_id }));
    return row?.accepted_at === undefined ? undefined : 'accepted';
  }
}
