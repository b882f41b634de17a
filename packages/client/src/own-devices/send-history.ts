/**
 * Sends a hand-over, batch after batch. Each batch is one message, sealed for that device alone. It is
 * sent without a row of its own: after a crash the batch is read again and sent once more, and the other
 * device has its messages already.
 */
import type { AccountCore } from '../core.ts';
import type { PlainError } from '../errors.ts';
import type { HandOverEvent } from '../events.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import {
  checkedStatus,
  handedOver,
  handOverDays,
  handOvers,
  historyType,
  isClientError,
  isRefusal,
  leavesOpen,
  recipientsOf,
  recordEvents,
  recordPassing,
  retryHintOf,
  sealMessage,
  unixSeconds,
} from '../taken.ts';
import { type HistoryBatch, nextHistory } from './collect-history.ts';
import type { HandOverDay, HandOverRow } from './hand-over-rows.ts';

const method = 'message.send';
/** Batches sent without a pause. */
const burst = 8;
/** Milliseconds between later ones, so that other calls of the account come first. */
const pause = 1_000;
/** Seconds of a relay's hint above which the hand-over goes on tomorrow; otherwise it waits so long, too. */
const longestHint = 60;
/**
 * Bytes of calls of one day, to all devices: a quarter of what a relay stores of an account in a day by
 * default. The rest is for what people write.
 */
const dayBytes = 8 * 2 ** 20;

type Listener = (core: AccountCore, event: HandOverEvent) => void;
/** Callers of `handOver`: the run that sends may be another one's. */
export const listeners = new Set<Listener>();

/**
 * Sends batch after batch, until the end or until as much was sent as is on one day.
 *
 * @param batches most of them in this call, which does not wait for the relay then
 */
export async function sendHistory(
  core: AccountCore,
  device: string,
  signal: AbortSignal,
  batches?: number,
): Promise<void> {
  for (let count = 0; count !== batches; ) {
    signal.throwIfAborted();
    if (count >= burst) await core.clock.sleep(pause, signal);
    try {
      const event = await sendBatch(core, device, signal);
      if (event === undefined) return;
      count += 1;
      tell(core, event);
      if (event.isComplete) return;
    } catch (error) {
      signal.throwIfAborted();
      if (isFinal(error)) await giveUp(core, device, error as PlainError);
      if (!isRefusal(error, 'rate_limited')) throw error;
      const hint = retryHintOf(error) ?? 0;
      if (hint > longestHint) return await endDay(core);
      if (batches !== undefined) return;
      // The call was repeated by then, after waits of its own.
      await core.clock.sleep((longestHint + hint) * 1_000, signal);
    }
  }
}

function tell(core: AccountCore, event: HandOverEvent): void {
  for (const listener of listeners) listener(core, event);
}

/**
 * Sends no more today: the relay takes no more of the account. On other days less is sent, so that the
 * relay takes what people write.
 */
async function endDay(core: AccountCore): Promise<void> {
  const today = await dayOf(core);
  await core.store.write(async (tx) => {
    const { bytes, most } = await sentOn(tx, today);
    // Without bytes of its own it learns nothing.
    const least = Math.ceil(bytes / 4) || most;
    await handOverDays.put(tx, 'own', { day: today, bytes: most, most: Math.min(most, least) });
  });
}

/** Returns the day (UTC) by the home relay's clock. */
async function dayOf(core: AccountCore): Promise<number> {
  return Math.floor((await core.home()).relayClock.now() / 86_400);
}

/** Returns what was handed over on a day. */
async function sentOn(tx: StoreReader, day: number): Promise<HandOverDay> {
  const known = (await handOverDays.get(tx, 'own')) ?? { day, bytes: 0, most: dayBytes };
  return known.day === day ? known : { ...known, day, bytes: 0 };
}

/** Whether the device is none of the account's any more, or nothing of it can be sent. */
function isFinal(error: unknown): boolean {
  if (isClientError(error, 'no_recipient_device') || isClientError(error, 'invalid_input'))
    return true;
  return isRefusal(error) && !leavesOpen(error) && error.method === method;
}

/** @returns the progress; `undefined` if there is no hand-over any more, or it goes on tomorrow */
async function sendBatch(
  core: AccountCore,
  device: string,
  signal: AbortSignal,
): Promise<HandOverEvent | undefined> {
  const day = await dayOf(core);
  const found = await core.store.read(async (tx) => {
    const row = await handOvers.get(tx, device);
    const { bytes, most } = await sentOn(tx, day);
    return row && bytes < most ? { row, batch: await nextHistory(tx, row) } : undefined;
  });
  if (found === undefined) return undefined;
  const { row, batch } = found;
  const count = batch.messages.length + batch.group_messages.length;
  const sent = row.sent + count;
  const isSent = count > 0 || (batch.next === undefined && sent > 0);
  const bytes = isSent ? await sendObject(core, { row, batch, sent }, signal) : 0;
  return await core.store.write(async (tx) => {
    const before = await sentOn(tx, day);
    await handOverDays.put(tx, 'own', { ...before, bytes: before.bytes + bytes });
    return await storeProgress(core, tx, { row, batch, sent });
  });
}

/** @returns bytes of the call */
async function sendObject(
  core: AccountCore,
  {
    row,
    batch,
    sent,
  }: { readonly row: HandOverRow; readonly batch: HistoryBatch; readonly sent: number },
  signal: AbortSignal,
): Promise<number> {
  const recipients = await recipient(core, row.device, { refresh: false, signal });
  const home = await core.home();
  const { messages, group_messages, next } = batch;
  const params = sealMessage(core.network, {
    from: core.device,
    to: core.account,
    createdAt: home.relayClock.now(),
    content: {
      $type: historyType,
      ...{ messages, group_messages, sent },
      total: Math.max(sent, row.total),
      complete: next === undefined,
    },
    recipients,
    random: core.random,
  });
  checkedStatus(await home.call(method, params, { signal }), method);
  return JSON.stringify(params).length;
}

/** @throws ClientError `no_recipient_device` */
export async function recipient(
  core: AccountCore,
  device: string,
  options: { readonly refresh: boolean; readonly signal: AbortSignal },
) {
  const message = { to: core.account, includeThisDevice: false, devices: [device] };
  return await recipientsOf(core, message, options);
}

async function storeProgress(
  core: AccountCore,
  tx: StoreWriter,
  done: { readonly row: HandOverRow; readonly batch: HistoryBatch; readonly sent: number },
): Promise<HandOverEvent | undefined> {
  const { row, batch, sent } = done;
  const { device } = row;
  const known = await handOvers.get(tx, device);
  // Begun anew meanwhile, or sent by another program of this device.
  if (JSON.stringify(known) !== JSON.stringify(row)) return known && progressOf(known);
  const next = { ...row, sent, skipped: row.skipped + batch.skipped };
  if (batch.next !== undefined) await handOvers.put(tx, device, { ...next, at: batch.next });
  else {
    await handOvers.delete(tx, device);
    if (!row.isPart) await handedOver.put(tx, device, unixSeconds(core.clock));
  }
  const event = progressOf(next, batch.next === undefined);
  await recordEvents(tx, [event]);
  return event;
}

export function progressOf(
  { device: deviceId, sent, skipped, total }: HandOverRow,
  isComplete = false,
): HandOverEvent {
  return { kind: 'hand-over', deviceId, sent, skipped, total, isComplete };
}

async function giveUp(core: AccountCore, device: string, error: PlainError): Promise<void> {
  const row = await core.store.write(async (tx) => {
    const known = await handOvers.get(tx, device);
    await handOvers.delete(tx, device);
    return known;
  });
  if (row === undefined) return;
  const event = { ...progressOf(row), error };
  await recordPassing(core, [event]);
  tell(core, event);
}
