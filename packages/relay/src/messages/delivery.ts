import type { Job, RelayContext } from '../context.ts';
import { inTurns } from '../event-loop.ts';
import { deliveryFailed, recipientsNotLocated } from '../observability/events.ts';
import { attempt } from './attempt.ts';
import { Running, storeAndClaim } from './claim.ts';
import { type Lane, readLanes, releaseLane, wakeLane } from './lane-store.ts';
import type { Outcome } from './outcomes.ts';
import type { ClaimedDelivery } from './queue-store.ts';
import { type PausedLane, relocate } from './relocate.ts';
import { deliveryJobName } from './rules.ts';

/**
 * Milliseconds between two turns: the answers that arrive meanwhile share a transaction, which blocks
 * the thread for a flush to disk. The deliveries under way are more than what is answered meanwhile.
 */
const turnInterval = 8;

/** Milliseconds between reads of newly due deliveries while slow ones are in flight. */
const pollInterval = 1_000;

/**
 * Delivers messages accepted for accounts that were not at home here (04 section 16). All its state
 * is in storage, so a run that was stopped is continued by the next.
 */
export const deliveryJob: Job = {
  name: deliveryJobName,
  async run(context, signal, onWake) {
    const run = new DeliveryRun(context, signal);
    using _wakes = onWake(run.noteChange);
    await run.untilIdle();
    return firstDue(await context.storage.read(readLanes));
  },
};

/**
 * Attempts what is due, and what becomes due meanwhile, until nothing is under way. It takes turns:
 * each stores the outcomes since the last one and starts as many attempts as slots are free.
 */
class DeliveryRun {
  readonly #context: RelayContext;
  readonly #signal: AbortSignal;
  readonly #running = new Running();
  /** Of attempts that have ended; not stored yet. */
  readonly #outcomes: Outcome[] = [];
  /** Recipients that are located again, by the relay that is not reached. */
  readonly #relocating = new Map<string, Set<string>>();
  #changed = Promise.withResolvers<void>();
  #isChanged = false;
  /** When the last turn began, in milliseconds of `performance.now()`. */
  #turnAt = 0;

  constructor(context: RelayContext, signal: AbortSignal) {
    this.#context = context;
    this.#signal = signal;
  }

  readonly noteChange = (): void => {
    this.#isChanged = true;
    this.#changed.resolve();
  };

  async untilIdle(): Promise<void> {
    for (;;) {
      await this.#untilTurn();
      this.#isChanged = false;
      this.#changed = Promise.withResolvers<void>();
      await this.#turn();
      // What ended while the lanes were read may have made another delivery due.
      if (this.#isChanged) continue;
      if (this.#running.size === 0 && this.#relocating.size === 0) return;
      using _poll = this.#context.clock.after(pollInterval, this.noteChange);
      await this.#changed.promise;
    }
  }

  /** Waits until the next turn may begin. Sockets are read first, also before the first one. */
  async #untilTurn(): Promise<void> {
    const wait = this.#turnAt + turnInterval - performance.now();
    await new Promise((resolve) => {
      if (wait > 0) setTimeout(resolve, wait);
      else setImmediate(resolve);
    });
    this.#turnAt = performance.now();
  }

  /**
   * @throws if storage fails while nothing is under way; deliveries whose outcomes are not stored are
   *   due again after their leases
   */
  async #turn(): Promise<void> {
    const outcomes = this.#outcomes.splice(0);
    const mayClaim = !this.#signal.aborted;
    try {
      const options = { outcomes, mayClaim };
      const { claimed, postponed } = await storeAndClaim(this.#context, this.#running, options);
      for (const [destination, recipients] of postponed) this.#relocate(destination, recipients);
      // Each formats a request of up to several hundred kilobytes.
      await inTurns(claimed, (delivery) => void this.#attempt(delivery));
    } catch (error) {
      // Other outcomes that have come meanwhile are a reason to try again.
      if (this.#running.size === 0 && this.#outcomes.length === 0) throw error;
      this.#outcomes.unshift(...outcomes);
    }
  }

  /** After a fault of this relay the delivery is due again when its lease ends. */
  async #attempt(delivery: ClaimedDelivery): Promise<void> {
    const { destination, messageId } = delivery;
    this.#running.add(destination);
    try {
      const result = await attempt(this.#context, delivery);
      if (result !== undefined) this.#outcomes.push({ delivery, result });
    } catch (error) {
      deliveryFailed(this.#context, { messageId, error });
    }
    this.#running.delete(destination);
    this.noteChange();
  }

  #relocate(destination: string, recipients: Set<string>): void {
    const underWay = this.#relocating.get(destination);
    if (underWay !== undefined) {
      for (const recipient of recipients) underWay.add(recipient);
      return;
    }
    this.#relocating.set(destination, recipients);
    const lane = { destination, recipients, signal: this.#signal };
    void relocateSafely(this.#context, lane).finally(() => {
      this.#relocating.delete(destination);
      this.noteChange();
    });
  }
}

function firstDue(lanes: readonly Lane[]): number | undefined {
  if (lanes.length === 0) return undefined;
  return Math.min(...lanes.map(({ nextAttemptAt }) => nextAttemptAt));
}

/** Locates recipients again; after a fault of this relay, at the end of the lane's next pause. */
async function relocateSafely(context: RelayContext, lane: PausedLane): Promise<void> {
  try {
    await relocate(context, lane);
  } catch (error) {
    recipientsNotLocated(context, error);
  }
}

/**
 * Makes the messages that wait for a relay due, because it is reachable again. Deliveries that a
 * process has claimed, and waits that the relay itself asked for, stay as they are.
 *
 * @example
 * await wakeDestination(context, relayId);
 */
export async function wakeDestination(context: RelayContext, relayId: string): Promise<void> {
  await inBatches(context, relayId, wakeLane);
  context.jobs.wake(deliveryJobName);
}

/**
 * Makes the deliveries due that were under way when the relay's process was killed. To be called
 * before the jobs start, and only if the relay has no other process, which may attempt them.
 *
 * @example
 * await releaseDeliveries(context);
 */
export async function releaseDeliveries(context: RelayContext): Promise<void> {
  for (const { destination } of await context.storage.read(readLanes)) {
    await inBatches(context, destination, releaseLane);
  }
}

/** Changes deliveries of a lane, a batch in each transaction, until there are no more. */
async function inBatches(
  { clock, limits, storage }: RelayContext,
  destination: string,
  change: typeof wakeLane,
): Promise<void> {
  const batchSize = limits.deliveryBatch;
  for (let changed = batchSize; changed === batchSize; ) {
    const batch = { destination, now: clock.now(), batchSize };
    changed = await storage.write(deliveryJobName, (tx) => change(tx, batch));
  }
}
