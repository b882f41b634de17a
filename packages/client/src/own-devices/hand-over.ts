/**
 * Hands stored messages to another own device, in the background and over restarts (decision 0039).
 * Each batch is one message, sealed for that device alone. It is sent without a row of its own: after
 * a crash the batch is read again and sent once more, and the other device has its messages already.
 */
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import type { AccountCore } from '../core.ts';
import type { PlainError } from '../errors.ts';
import type { HandOverEvent } from '../events.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  backoff,
  buildConversations,
  ClientError,
  checkedStatus,
  handedOver,
  handOvers,
  historyType,
  isClientError,
  isRefusal,
  isTemporary,
  recipientsOf,
  recordEvents,
  recordPassing,
  retryHintOf,
  sealMessage,
  unixSeconds,
} from '../taken.ts';
import { countHistory, type HistoryBatch, historySources, nextHistory } from './collect-history.ts';
import type { HandOverRow } from './hand-over-rows.ts';

const method = 'message.send';
/** Batches sent without a pause. */
const burst = 8;
/** Milliseconds between later ones, so that other calls of the account come first. */
const pause = 1_000;
const retry = { attempts: Number.POSITIVE_INFINITY, base: 1_000, cap: 60_000 };
/** Conversations of one hand-over. */
const mostConversations = 1_000;

export interface HandOverOptions {
  /** Only these conversations with people and groups; all by default. */
  readonly conversations?: readonly ConversationKey[];
  /** Only messages that a relay accepted at or after these Unix seconds. */
  readonly since?: number;
}

/** Returns the name of a hand-over's run. */
const laneOf = (device: string) => `hand-over/${device}`;

/**
 * Begins a hand-over, or goes on with an unfinished one to the same device, and waits for its end.
 *
 * @throws ClientError `invalid_input`, `no_recipient_device`
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; it goes on with the next synchronization
 */
export async function handOver(
  core: AccountCore,
  device: string,
  options: HandOverOptions & {
    readonly progress: ((event: HandOverEvent) => void) | undefined;
    readonly signal: AbortSignal;
  },
): Promise<HandOverEvent> {
  const { conversations, since, progress, signal } = options;
  if (device === core.device.deviceId) {
    throw new ClientError('invalid_input', 'this device has its messages: name another one');
  }
  if ((conversations?.length ?? 0) > mostConversations) {
    throw new ClientError('invalid_input', `at most ${mostConversations} conversations at once`);
  }
  if (conversations?.some(({ kind }) => kind === 'channel')) {
    throw new ClientError('invalid_input', 'posts of channels are read from their hosts');
  }
  await recipient(core, device, { refresh: true, signal });
  await buildConversations(core);
  await core.store.write(async (tx) => {
    const sources = await historySources(tx, conversations);
    const known = await handOvers.get(tx, device);
    const isSame = JSON.stringify(known?.sources) === JSON.stringify(sources);
    if (known !== undefined && isSame && known.since === since) return;
    const total = await countHistory(tx, sources);
    const begun = { device, sources, at: { source: 0 }, sent: 0, skipped: 0, total };
    await handOvers.put(tx, device, { ...begun, ...(since !== undefined && { since }) });
  });
  let last: HandOverEvent = progressOf(
    await core.store.read((tx) => handOvers.get(tx, device)),
    device,
  );
  await core.sender.alone(laneOf(device), async (closed) => {
    const either = AbortSignal.any([signal, closed]);
    for await (const event of sendHistory(core, device, either)) {
      last = event;
      progress?.(event);
    }
  });
  return last;
}

/** Goes on with every unfinished hand-over. @param batches most batches of each one in this call */
export async function continueHandOvers(
  core: AccountCore,
  signal: AbortSignal,
  batches: number,
): Promise<void> {
  const rows = await core.store.read((tx) => handOvers.list(tx));
  for (const { key: device } of rows) {
    await core.sender.run(laneOf(device), async (closed) => {
      let left = batches;
      const either = AbortSignal.any([signal, closed]);
      try {
        for await (const _event of sendHistory(core, device, either)) {
          left -= 1;
          if (left <= 0) return;
        }
      } catch (error) {
        if (either.aborted || !isClientError(error)) throw error;
      }
    });
  }
}

/** Sends batch after batch, and yields the progress after each one. */
async function* sendHistory(
  core: AccountCore,
  device: string,
  signal: AbortSignal,
): AsyncGenerator<HandOverEvent> {
  let failures = 0;
  for (let count = 0; ; ) {
    signal.throwIfAborted();
    if (count >= burst) await core.clock.sleep(pause, signal);
    try {
      const event = await sendBatch(core, device, signal);
      if (event === undefined) return;
      count += 1;
      failures = 0;
      yield event;
      if (event.isComplete) return;
    } catch (error) {
      signal.throwIfAborted();
      if (isFinal(error)) await giveUp(core, device, error as PlainError);
      if (!isRefusal(error, 'rate_limited')) throw error;
      failures += 1;
      const hintSeconds = retryHintOf(error);
      await core.clock.sleep(
        backoff(failures, retry, { random: core.random, hintSeconds }),
        signal,
      );
    }
  }
}

/** Whether the device is none of the account's any more, or nothing of it can be sent. */
function isFinal(error: unknown): boolean {
  if (isClientError(error, 'no_recipient_device') || isClientError(error, 'invalid_input'))
    return true;
  return isRefusal(error) && !isTemporary(error) && error.method === method;
}

/** @returns the progress; `undefined` if there is no hand-over any more */
async function sendBatch(
  core: AccountCore,
  device: string,
  signal: AbortSignal,
): Promise<HandOverEvent | undefined> {
  const row = await core.store.read((tx) => handOvers.get(tx, device));
  if (row === undefined) return undefined;
  const batch = await core.store.read((tx) => nextHistory(tx, row));
  const count = batch.messages.length + batch.group_messages.length;
  const sent = row.sent + count;
  if (count > 0 || (batch.next === undefined && sent > 0)) {
    await sendObject(core, { row, batch, sent }, signal);
  }
  return await core.store.write((tx) => storeProgress(core, tx, { row, batch, sent }));
}

async function sendObject(
  core: AccountCore,
  {
    row,
    batch,
    sent,
  }: { readonly row: HandOverRow; readonly batch: HistoryBatch; readonly sent: number },
  signal: AbortSignal,
): Promise<void> {
  const recipients = await recipient(core, row.device, { refresh: false, signal });
  const home = await core.home();
  const { messages, group_messages, next } = batch;
  const params = sealMessage(core.network, {
    from: core.device,
    to: core.account,
    createdAt: home.relayClock.now(),
    content: {
      $type: historyType,
      ...(messages.length > 0 && { messages }),
      ...(group_messages.length > 0 && { group_messages }),
      sent,
      total: Math.max(sent, row.total),
      complete: next === undefined,
    },
    recipients,
    random: core.random,
  });
  checkedStatus(await home.call(method, params, { signal }), method);
}

async function recipient(
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
  if (JSON.stringify(known) !== JSON.stringify(row)) return known && progressOf(known, device);
  const next = { ...row, sent, skipped: row.skipped + batch.skipped };
  if (batch.next !== undefined) await handOvers.put(tx, device, { ...next, at: batch.next });
  else {
    await handOvers.delete(tx, device);
    await handedOver.put(tx, device, unixSeconds(core.clock));
  }
  const event = { ...progressOf(next, device), isComplete: batch.next === undefined };
  await recordEvents(tx, [event]);
  return event;
}

function progressOf(row: HandOverRow | undefined, deviceId: string): HandOverEvent {
  const { sent, skipped, total } = row ?? { sent: 0, skipped: 0, total: 0 };
  return { kind: 'hand-over', deviceId, sent, skipped, total, isComplete: row === undefined };
}

async function giveUp(core: AccountCore, device: string, error: PlainError): Promise<void> {
  const row = await core.store.write(async (tx) => {
    const known = await handOvers.get(tx, device);
    await handOvers.delete(tx, device);
    return known;
  });
  if (row !== undefined) await recordPassing(core, [{ ...progressOf(row, device), error }]);
}
