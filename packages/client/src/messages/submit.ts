/** Submits stored messages and stores their outcome (04 §12, §14, §15). */
import { checkDeliveryStatus, type DeliveryStatus } from '@posthouse/protocol';
import { isWrongHome } from '../accounts/home-relay.ts';
import { endsUnanswered, leavesSealedOpen } from '../connect/backoff.ts';
import { contactRow, putContact } from '../contacts/contact-rows.ts';
import type { AccountCore } from '../core.ts';
import {
  ClientError,
  checkRelayAnswer,
  isRefusal,
  type PlainRefusal,
  RelayMisbehaviour,
  shortened,
} from '../errors.ts';
import type { StoreWriter } from '../store/index.ts';
import { recordStatus } from '../sync/message-status.ts';
import { enqueueTask } from '../sync/tasks.ts';
import { isQueued, messageQueue } from './message-queue.ts';
import { type MessageRow, messageRow, removeMessage, updateMessage } from './message-rows.ts';
import { type OutboxRow, outbox, type Purpose } from './outbox.ts';

/**
 * Submits a stored message; after a lost answer it is submitted again unchanged.
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function submit(
  core: AccountCore,
  row: OutboxRow,
  signal: AbortSignal,
): Promise<MessageRow> {
  const method = 'message.send';
  try {
    const answer = await core.relay(row.relayId).call(method, row.params, { signal });
    const status = checkedStatus(answer, method);
    const { envelope } = row.params;
    if (envelope.from === envelope.to && status.status !== 'target_accepted') {
      throw new RelayMisbehaviour('invalid_delivery_status', 'self-delivery ends in the call', {
        method,
      });
    }
    return await storeStatus(core, row, status);
  } catch (error) {
    // A relay that the account left may have accepted the message before, with its answer lost: it
    // is asked for the outcome (03 §12.2).
    const isAnswer = isRefusal(error) && error.method === method;
    const { relayClock } = core.relay(row.relayId);
    const age = relayClock.now() - row.params.envelope.created_at;
    const isRetried = leavesSealedOpen(error, age);
    const isOpen = isRetried || isWrongHome(error) || isUnsettled(row, error);
    if (isAnswer && !isOpen) {
      const known = endsUnanswered(error, age)
        ? await (await core.later()).knownStatus(core, row, signal)
        : undefined;
      if (typeof known === 'object') return await storeStatus(core, row, known);
      await storeRejection(core, known === 'accepted' ? { ...row, accepted: true } : row, error);
    }
    throw error;
  }
}

/**
 * Whether a refusal of a queued message does not settle it yet. It may be sealed again, once: with
 * fresh device states after `device_unknown`, with the relay's clock after `clock_skew` (04 §15.1),
 * with the contact's latest grant after `forbidden`: the one it was sent with may be of devices that
 * were removed (03 §18). After `message_expired` it may have been accepted before, also under its
 * second ID.
 */
export function isUnsettled(row: OutboxRow, error: unknown): error is PlainRefusal {
  if (row.place === undefined || !isRefusal(error) || error.method !== 'message.send') return false;
  if (isRefusal(error, 'message_expired')) return true;
  return isResealable(row) && isRefusal(error, 'device_unknown', 'clock_skew', 'forbidden');
}

/** Whether a message was not sealed again yet. */
export function isResealable({ first_id }: OutboxRow): boolean {
  return first_id === undefined;
}

/** Writes a row's new state; a message with an answer has no place in the queue any more. */
async function putAnswered(
  tx: StoreWriter,
  { place, ...row }: OutboxRow,
  isOpen: boolean,
): Promise<void> {
  const { message_id } = row.params.envelope;
  // Another program of this device may have sent it, and sealed the next one.
  const isIts = place !== undefined && (await isQueued(tx, { key: place, value: { message_id } }));
  if (isIts) await messageQueue.delete(tx, place);
  await (isOpen ? outbox.put(tx, message_id, row) : outbox.delete(tx, message_id));
}

/** Takes a message out of the queue whose outcome only an unreachable former relay knows. */
export async function leaveQueue(core: AccountCore, row: OutboxRow): Promise<void> {
  await core.store.write((tx) => putAnswered(tx, row, true));
}

export function checkedStatus(answer: unknown, method: string): DeliveryStatus {
  return checkRelayAnswer('invalid_delivery_status', method, () => {
    checkDeliveryStatus(answer);
    return answer;
  });
}

/** Stores a delivery status of the relay that the message was sent to. */
export async function storeStatus(
  core: AccountCore,
  row: OutboxRow,
  status: DeliveryStatus,
): Promise<MessageRow> {
  const { envelope } = row.params;
  return await core.store.write(async (tx) => {
    const known = await messageRow(tx, envelope);
    const isOpen = status.status === 'delivering';
    // The answer of an earlier request arrives late.
    if (isOpen && known !== undefined && hasEnded(known)) {
      await putAnswered(tx, row, false);
      return known;
    }
    await putAnswered(tx, { ...row, accepted: true }, isOpen);
    if (status.status === 'failed') {
      await undoPurpose(tx, row.purpose, { retry: status.error?.code === 'device_unknown' });
    }
    if (known === undefined)
      throw new ClientError(
        'store_mismatch',
        'a sent message is missing in the store: restore the store',
      );
    const { error: _before, ...rest } = known;
    const updated: MessageRow = {
      ...rest,
      status: status.status,
      accepted_at: status.accepted_at,
      ...(status.error !== undefined && {
        error: { code: status.error.code, message: shortened(status.error.message) },
      }),
    };
    await updateMessage(tx, updated);
    if (updated.status !== known.status) await recordMessageStatus(tx, updated, row);
    return updated;
  });
}

/** Whether nothing changes the status of a message any more. */
function hasEnded({ status }: MessageRow): boolean {
  return status !== undefined && !['waiting', 'sending', 'delivering'].includes(status);
}

/** Stores that the relay refused a message: it has no record of it (04 §12.1). */
export async function storeRejection(
  core: AccountCore,
  row: OutboxRow,
  refusal: PlainRefusal,
): Promise<void> {
  const { envelope } = row.params;
  await core.store.write(async (tx) => {
    await putAnswered(tx, row, false);
    await undoPurpose(tx, row.purpose, {
      // A task's message may arrive twice.
      retry: isRefusal(refusal, 'device_unknown', 'clock_skew', 'message_expired'),
    });
    const known = await messageRow(tx, envelope);
    if (known === undefined) return;
    if (row.purpose.kind === 'duty') await removeMessage(core, tx, known);
    else {
      const error = { code: refusal.error, message: refusal.message };
      const status = row.accepted ? 'failed' : 'rejected';
      const ended: MessageRow = { ...known, status, error };
      await updateMessage(tx, ended);
      await recordMessageStatus(tx, ended, row);
    }
  });
}

/** Records the new status of a direct message; those of consents and tasks concern no reader. */
export async function recordMessageStatus(
  tx: StoreWriter,
  { to, message_id, status, error }: MessageRow,
  { purpose, first_id }: Pick<OutboxRow, 'purpose' | 'first_id'>,
): Promise<void> {
  if (purpose.kind !== 'direct' || status === undefined) return;
  await recordStatus(tx, {
    conversation: { kind: 'person', id: to },
    messageId: first_id ?? message_id,
    status,
    ...(error !== undefined && { error }),
  });
}

/** Undoes the changes that depended on a message that is not delivered. */
export async function undoPurpose(
  tx: StoreWriter,
  purpose: Purpose,
  { retry }: { readonly retry: boolean },
): Promise<void> {
  if (purpose.kind === 'duty' && retry) {
    for (const task of purpose.duties) await enqueueTask(tx, task);
  }
  if (purpose.kind !== 'consent') return;
  const now = await contactRow(tx, purpose.before.account);
  if (JSON.stringify(now) === JSON.stringify(purpose.after)) await putContact(tx, purpose.before);
}
