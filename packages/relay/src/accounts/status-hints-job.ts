import type { Job, RelayContext } from '../context.ts';
import { statusHintsJobName } from './store-route.ts';
import {
  type DueHint,
  deleteWatchers,
  earliestQuestion,
  nextHint,
  readDueHints,
  updateHint,
} from './watcher-store.ts';

/** Hints read, and relays forgotten, at once. */
const batchSize = 200;
/** Seconds between the five attempts to send a hint. */
const retryDelays = [15, 45, 120, 420] as const;

/**
 * Sends `device.status.changed` to the relays that asked for a device within the last month
 * (07 §C9). A relay that is not reached five times in ten minutes is not sent the hint: it asks again
 * by itself, when its answer has become old.
 */
export const statusHintsJob: Job = {
  name: statusHintsJobName,
  async run(context, signal) {
    const { clock, limits, storage } = context;
    const now = clock.now();
    for (let after: DueHint | undefined; !signal.aborted; ) {
      const due = await storage.read((tx) => readDueHints(tx, { now, after, limit: batchSize }));
      after = due.at(-1);
      if (after === undefined) break;
      const lanes = Map.groupBy(due, ({ relayId }) => relayId);
      await Promise.all([...lanes.values()].map((hints) => send(context, hints, signal)));
    }
    await forgetWatchers(context, now - limits.statusWatchPeriod, signal);
    return await storage.read(async (tx) => {
      const askedAt = (await earliestQuestion(tx)) ?? Infinity;
      const next = Math.min((await nextHint(tx)) ?? Infinity, askedAt + limits.statusWatchPeriod);
      return Number.isFinite(next) ? next : undefined;
    });
  },
};

/** Forgets the relays that last asked by an instant. */
async function forgetWatchers(
  { storage }: RelayContext,
  by: number,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const askedAt = await storage.read(earliestQuestion);
    if (askedAt === undefined || askedAt > by) return;
    await storage.write(statusHintsJobName, (tx) => deleteWatchers(tx, by, batchSize));
  }
}

/** Sends the hints of one relay, until it is not reached. */
async function send(
  { clock, relayClient, storage }: RelayContext,
  hints: readonly DueHint[],
  signal: AbortSignal,
): Promise<void> {
  let isReachable = true;
  for (const hint of hints) {
    if (signal.aborted) return;
    const { account, deviceId, relayId, failures } = hint;
    if (isReachable) {
      const params = { account, device_id: deviceId };
      isReachable = await relayClient.notify(relayId, 'device.status.changed', params);
    }
    const delay = retryDelays[failures];
    const retry = {
      hintAt: delay === undefined ? null : clock.now() + delay,
      failures: failures + 1,
    };
    await storage.write(`account:${account}`, (tx) =>
      updateHint(tx, hint, isReachable ? { hintAt: null, failures: 0 } : retry),
    );
  }
}
