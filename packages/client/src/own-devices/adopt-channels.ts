/**
 * Follows and unfollows the channels that other own devices do. Only the channel's address comes from
 * them: descriptor and timeline are read from the host and verified as after a link (06 §4).
 */
import type { AccountCore } from '../core.ts';
import type { StoreReader } from '../store/index.ts';
import {
  backoff,
  channelRow,
  followChannel,
  isClientError,
  mayRecover,
  RelayUnreachable,
  sharedChannels,
  unfollowChannel,
} from '../taken.ts';
import { finishMarks } from './apply-marks.ts';
import type { SharedChannelRow } from './change-rows.ts';

/** Hosts that are asked at the same time. */
const concurrency = 4;
/** Milliseconds for one channel's host. */
const hostLimit = 15_000;
const retry = { attempts: Number.POSITIVE_INFINITY, base: 30_000, cap: 3_600_000 };
/** Failed tries after which a channel is given up. */
const mostFailures = 200;

/**
 * Adopts what other own devices decided: marks the rest of their messages as read, and follows and
 * unfollows each channel that is due. A host that fails is asked again later.
 *
 * @param time milliseconds after which no other host is asked
 */
export async function adoptFromOwnDevices(
  core: AccountCore,
  signal: AbortSignal,
  time = Number.POSITIVE_INFINITY,
): Promise<void> {
  await finishMarks(core);
  const now = core.clock.milliseconds();
  const rows = (await core.store.read((tx) => sharedChannels.list(tx))).map(({ value }) => value);
  const due = rows.filter(({ retryAt = 0 }) => retryAt <= now);
  const worker = async () => {
    for (let row = due.shift(); row !== undefined; row = due.shift()) {
      signal.throwIfAborted();
      if (core.clock.milliseconds() - now >= time) return;
      await adoptChannel(core, row, signal);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

async function adoptChannel(
  core: AccountCore,
  row: SharedChannelRow,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (await core.store.read((tx) => isNewer(tx, row))) await adopt(core, row, signal);
    await settle(core, row);
  } catch (error) {
    signal.throwIfAborted();
    if (!isClientError(error)) throw error;
    await settle(core, row, mayRecover(error) ? failedOnce(core, row) : undefined);
  }
}

/** Whether nothing newer was decided here since the row was stored. */
async function isNewer(tx: StoreReader, shared: SharedChannelRow): Promise<boolean> {
  const row = await channelRow(tx, shared.channel_id);
  if (row === undefined) return shared.isFollowed;
  return (row.changedAt ?? 0) < shared.changedAt && row.standing !== 'creating';
}

async function adopt(
  core: AccountCore,
  { isFollowed, channel_id, relay_id, changedAt }: SharedChannelRow,
  signal: AbortSignal,
): Promise<void> {
  if (!isFollowed) return await unfollowChannel(core, channel_id, { changedAt });
  const over = new AbortController();
  const late = core.clock.sleep(hostLimit, AbortSignal.any([signal, over.signal])).then(
    () => over.abort(new RelayUnreachable('the host takes too long', { outcomeUnknown: true })),
    () => undefined,
  );
  try {
    const either = AbortSignal.any([signal, over.signal]);
    const how = { from: 'latest', changedAt, signal: either } as const;
    await followChannel(core, { channel_id, relay_id }, how);
  } finally {
    over.abort();
    await late;
  }
}

function failedOnce(core: AccountCore, row: SharedChannelRow): SharedChannelRow | undefined {
  const failures = (row.failures ?? 0) + 1;
  if (failures > mostFailures) return undefined;
  const retryAt = core.clock.milliseconds() + backoff(failures, retry, core);
  return { ...row, failures, retryAt };
}

/** Removes a row that is done, or stores when it is tried again; a newer one stays. */
async function settle(
  { store }: AccountCore,
  row: SharedChannelRow,
  next?: SharedChannelRow,
): Promise<void> {
  await store.write(async (tx) => {
    const known = await sharedChannels.get(tx, row.channel_id);
    if (known?.changedAt !== row.changedAt) return;
    if (next === undefined) await sharedChannels.delete(tx, row.channel_id);
    else await sharedChannels.put(tx, row.channel_id, next);
  });
}
