/**
 * Hands stored messages to another own device, in the background and over restarts (decision 0039).
 * `send-history.ts` sends them.
 */
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import type { AccountCore } from '../core.ts';
import type { HandOverEvent } from '../events.ts';
import {
  buildConversations,
  ClientError,
  handOvers,
  isClientError,
  runGroupTask,
  untilAborted,
} from '../taken.ts';
import { countHistory, historySources } from './collect-history.ts';
import type { HandOverRow } from './hand-over-rows.ts';
import { listeners, progressOf, recipient, sendHistory } from './send-history.ts';

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
 * Begins a hand-over, or goes on with an unfinished one to the same device, and waits for its end, or
 * until as much was sent as is on one day.
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
  const { conversations, progress, signal } = options;
  if (
    device === core.device.deviceId ||
    (conversations !== undefined &&
      (conversations.length > mostConversations ||
        conversations.some(({ kind }) => kind === 'channel')))
  ) {
    throw new ClientError(
      'invalid_input',
      'name another device, and 1,000 people or groups at most',
    );
  }
  await recipient(core, device, { refresh: true, signal });
  await buildConversations(core);
  // First, because a device leaves out messages of groups that it does not know.
  await runGroupTask(core, { kind: 'send-groups' }, signal);
  let last = progressOf(await begin(core, device, options));
  const listener = (of: AccountCore, event: HandOverEvent) => {
    if (of !== core || event.deviceId !== device) return;
    last = event;
    progress?.(event);
  };
  listeners.add(listener);
  try {
    const run = core.sender.alone(laneOf(device), (closed) =>
      sendHistory(core, device, AbortSignal.any([signal, closed])),
    );
    await untilAborted(run, signal);
  } finally {
    listeners.delete(listener);
  }
  const row = await core.store.read((tx) => handOvers.get(tx, device));
  // Another program of this device may have ended it.
  return row === undefined && last.error === undefined ? { ...last, isComplete: true } : last;
}

/** Stores a hand-over that begins, or returns the unfinished one with the same options. */
async function begin(
  core: AccountCore,
  device: string,
  { conversations, since, signal }: HandOverOptions & { readonly signal: AbortSignal },
): Promise<HandOverRow> {
  const { store } = core;
  const sources = await store.read((tx) => historySources(tx, conversations));
  const known = await store.read((tx) => handOvers.get(tx, device));
  const isSame =
    known?.since === since && JSON.stringify(known?.sources) === JSON.stringify(sources);
  if (known !== undefined && isSame) return known;
  const total = await countHistory(core, sources, signal);
  const begun = { device, sources, at: { source: 0 }, sent: 0, skipped: 0, total };
  const isPart = conversations !== undefined || since !== undefined;
  const row = {
    ...begun,
    ...(since !== undefined && { since }),
    ...(isPart && { isPart: true as const }),
  };
  await store.write((tx) => handOvers.put(tx, device, row));
  return row;
}

/**
 * Goes on with every unfinished hand-over.
 *
 * @param batches most batches of each one in this call, which waits for nothing then: neither for a run
 *   under way nor for the relay
 */
export async function continueHandOvers(
  core: AccountCore,
  signal: AbortSignal,
  batches?: number,
): Promise<void> {
  const rows = await core.store.read((tx) => handOvers.list(tx));
  for (const { key: device } of rows) {
    const lane = laneOf(device);
    if (batches !== undefined && core.sender.isRunning(lane)) continue;
    await core.sender.run(lane, async (closed) => {
      const either = AbortSignal.any([signal, closed]);
      try {
        await sendHistory(core, device, either, batches);
      } catch (error) {
        if (either.aborted || !isClientError(error)) throw error;
      }
    });
  }
}
