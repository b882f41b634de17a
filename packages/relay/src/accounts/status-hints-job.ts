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
/** Relays that are sent hints at once. */
const laneCount = 64;
/** Seconds between the five attempts to send a hint. */
const retryDelays = [15, 45, 120, 420] as const;

/**
 * Sends `device.status.changed` to the relays that asked for a device within the last month
 * (07 §C9). A relay that is not reached five times in ten minutes is not sent the hint: it asks again
 * by itself, when its answer has become old.
 */
export const statusHintsJob: Job = {
  name: statusHintsJobName,
  async run(context, signal, onWake) {
    const { clock, limits, storage } = context;
    const lanes = new HintLanes(context, signal);
    using _wakes = onWake(lanes.noteChange);
    await lanes.untilIdle();
    await forgetWatchers(context, clock.now() - limits.statusWatchPeriod, signal);
    return await storage.read(async (tx) => {
      const askedAt = (await earliestQuestion(tx)) ?? Infinity;
      const next = Math.min((await nextHint(tx)) ?? Infinity, askedAt + limits.statusWatchPeriod);
      return Number.isFinite(next) ? next : undefined;
    });
  },
};

/** Sends due hints, of each relay apart: one that is slow to be reached delays those of no other. */
class HintLanes {
  readonly #context: RelayContext;
  readonly #signal: AbortSignal;
  /** Relays that are sent hints. */
  readonly #busy = new Set<string>();
  #failure: { readonly error: unknown } | undefined;
  #changed = Promise.withResolvers<void>();

  constructor(context: RelayContext, signal: AbortSignal) {
    this.#context = context;
    this.#signal = signal;
  }

  readonly noteChange = (): void => this.#changed.resolve();

  /** @throws the first error of storage, when no hint is under way any more */
  async untilIdle(): Promise<void> {
    for (;;) {
      this.#changed = Promise.withResolvers();
      await this.#startLanes();
      if (this.#busy.size === 0) break;
      await this.#changed.promise;
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #startLanes(): Promise<void> {
    const { clock, storage } = this.#context;
    while (this.#mayStart) {
      const options = { now: clock.now(), besides: [...this.#busy], limit: batchSize };
      const due = await storage.read((tx) => readDueHints(tx, options));
      if (due.length === 0) return;
      for (const [relayId, hints] of Map.groupBy(due, (hint) => hint.relayId)) {
        if (this.#mayStart) void this.#send(relayId, hints);
      }
    }
  }

  get #mayStart(): boolean {
    return !this.#signal.aborted && this.#failure === undefined && this.#busy.size < laneCount;
  }

  async #send(relayId: string, hints: readonly DueHint[]): Promise<void> {
    this.#busy.add(relayId);
    try {
      await send(this.#context, hints, this.#signal);
    } catch (error) {
      this.#failure ??= { error };
    }
    this.#busy.delete(relayId);
    this.noteChange();
  }
}

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
