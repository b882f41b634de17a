/** Reads the status of messages that are being delivered, on the relay that knows it (04 §14, §15). */
import { homeRelay, isWrongHome, refreshHome } from '../accounts/home-relay.ts';
import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { isClientError, isRefusal, RelayRefused } from '../errors.ts';
import type { MessageRow } from './message-rows.ts';
import { type OutboxRow, outbox } from './outbox.ts';
import { checkedStatus, leaveQueue, storeRejection, storeStatus, submit } from './submit.ts';

const method = 'message.delivery.status';

/** Lists the messages whose outcome one relay knows. */
async function rowsAt({ store }: AccountCore, relayId: string): Promise<OutboxRow[]> {
  const rows = await store.read((tx) => outbox.list(tx));
  return rows.map(({ value }) => value).filter((row) => row.relayId === relayId);
}

/** Whether messages are left whose outcome only this relay knows. */
export async function awaitsRelay(core: AccountCore, relayId: string): Promise<boolean> {
  return (await rowsAt(core, relayId)).length > 0;
}

/**
 * Reads the status of the messages that one relay accepted, or may have accepted before the account
 * left it.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function flushOutbox(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<void> {
  for (const row of await rowsAt(core, relayId)) {
    // A queued message is sent when it is its turn.
    if (row.place !== undefined) continue;
    try {
      await askStatus(core, row, signal);
    } catch (error) {
      if (!isRefusal(error) || isTemporary(error) || isWrongHome(error)) throw error;
    }
  }
}

/** Reads the latest status from the relay that accepted the message (04 §14.3). */
async function askStatus(
  core: AccountCore,
  row: OutboxRow,
  signal: AbortSignal,
): Promise<MessageRow> {
  const params = { message_id: row.params.envelope.message_id };
  try {
    const answer = await core.relay(row.relayId).call(method, params, { signal });
    return await storeStatus(core, row, checkedStatus(answer, method));
  } catch (error) {
    if (!isRefusal(error, 'not_found', 'message_expired')) throw error;
    // A relay keeps its results longer than it delivers (04 §15.2): one that has none lost the
    // message, or never got it. Submitted unchanged at the home relay it is delivered once, also if
    // the former relay had delivered it (03 §12.2), or refused as expired.
    if (isRefusal(error, 'not_found')) {
      return await submit(core, await atHome(core, row), signal);
    }
    await storeRejection(core, row, error);
    throw error;
  }
}

/**
 * Settles a message that a relay refused because the account is not at home there: asks that relay
 * whether it accepted the message before, and submits it at the new home relay if not.
 *
 * @throws the refusal if no move is known; RelayRefused, RelayUnreachable, RelayMisbehaviour. The
 *   message stays in the outbox unless its outcome is known
 */
export async function submitAfterMove(
  core: AccountCore,
  row: OutboxRow,
  { refusal, signal }: { readonly refusal: unknown; readonly signal: AbortSignal },
): Promise<MessageRow> {
  await refreshHome(core, core.account, signal);
  if ((await homeRelay(core, core.account)) === row.relayId) throw refusal;
  return await askStatus(core, row, signal);
}

/**
 * Settles a queued message that was sent, without an answer, to a relay that is not the home relay
 * any more: that relay accepts no sends, and a message with another ID could be delivered twice
 * (04 §16.3). If it gives no outcome, the message leaves the queue, and those after it go on.
 */
export async function askFormerRelay(
  core: AccountCore,
  row: OutboxRow,
  signal: AbortSignal,
): Promise<void> {
  try {
    await askStatus(core, row, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!isClientError(error)) throw error;
    const { message_id } = row.params.envelope;
    const left = await core.store.read((tx) => outbox.get(tx, message_id));
    if (left?.relayId === row.relayId) await leaveQueue(core, left);
    throw error;
  }
}

/** Stores that a message is sent to the home relay from now on, before it is. */
async function atHome(core: AccountCore, row: OutboxRow): Promise<OutboxRow> {
  const relayId = await homeRelay(core, core.account);
  if (row.relayId === relayId) return row;
  const { restoredAt: _ofFormer, ...rest } = row;
  const moved = { ...rest, relayId, accepted: false };
  const { message_id } = row.params.envelope;
  await core.store.write(async (tx) => {
    if ((await outbox.get(tx, message_id)) !== undefined) await outbox.put(tx, message_id, moved);
  });
  return moved;
}

/** Ends the messages whose outcome a relay never said, and never will. */
export async function giveUpRelay(core: AccountCore, relayId: string): Promise<void> {
  const message = 'the relay that accepted it did not answer any more';
  for (const row of await rowsAt(core, relayId)) {
    await storeRejection(core, row, new RelayRefused(method, 'message_expired', { message }));
  }
}
