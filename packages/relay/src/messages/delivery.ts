import { homeOf } from '../accounts/index.ts';
import type { Job, RelayContext } from '../context.ts';
import type { RelayLimits } from '../limits.ts';
import { deliveryFailed, recipientsNotLocated } from '../observability/events.ts';
import type { Writer } from '../storage/types.ts';
import { attempt } from './attempt.ts';
import { type Lane, postponeLane, readLanes, unlocated, wakeLane } from './lane-store.ts';
import { type ClaimedDelivery, claimDue } from './queue-store.ts';
import { type PausedLane, relocate } from './relocate.ts';
import { deliveryJobName } from './rules.ts';

/** Milliseconds between reads of newly due deliveries while slow ones are in flight. */
const pollInterval = 1_000;

/**
 * Delivers messages accepted for accounts that were not at home here (04 section 16). All its state
 * is in storage, so a run that was stopped is continued by the next.
 */
export const deliveryJob: Job = {
  name: deliveryJobName,
  async run(context, signal, onWake) {
    const { clock, storage } = context;
    const running = new Running();
    /** Recipients that are located again, by the relay that is not reached. */
    const relocating = new Map<string, Set<string>>();
    let changed = Promise.withResolvers<void>();
    let isChanged = false;
    const noteChange = () => {
      isChanged = true;
      changed.resolve();
    };
    using _wakes = onWake(noteChange);
    for (;;) {
      isChanged = false;
      changed = Promise.withResolvers<void>();
      if (!signal.aborted) {
        const { claimed, postponed } = await claim(context, running);
        for (const [destination, recipients] of postponed) {
          const underWay = relocating.get(destination);
          if (underWay !== undefined) {
            for (const recipient of recipients) underWay.add(recipient);
            continue;
          }
          relocating.set(destination, recipients);
          void relocateSafely(context, { destination, recipients, signal }).finally(() => {
            relocating.delete(destination);
            noteChange();
          });
        }
        for (const delivery of claimed) {
          running.add(delivery.destination);
          void attemptSafely(context, delivery).finally(() => {
            running.delete(delivery.destination);
            noteChange();
          });
        }
      }
      // What ended while the lanes were read may have made another delivery due.
      if (isChanged) continue;
      if (running.size === 0 && relocating.size === 0) break;
      using _poll = clock.after(pollInterval, noteChange);
      await changed.promise;
    }
    return firstDue(await storage.read(readLanes));
  },
};

/** Counts the deliveries under way, by destination. */
class Running {
  readonly #counts = new Map<string, number>();
  size = 0;

  add(destination: string): void {
    this.#counts.set(destination, this.of(destination) + 1);
    this.size += 1;
  }

  delete(destination: string): void {
    const left = this.of(destination) - 1;
    if (left > 0) this.#counts.set(destination, left);
    else this.#counts.delete(destination);
    this.size -= 1;
  }

  of(destination: string): number {
    return this.#counts.get(destination) ?? 0;
  }
}

function firstDue(lanes: readonly Lane[]): number | undefined {
  if (lanes.length === 0) return undefined;
  return Math.min(...lanes.map(({ nextAttemptAt }) => nextAttemptAt));
}

/** What one look at the lanes gave. */
interface Claims {
  readonly claimed: readonly ClaimedDelivery[];
  /** Recipients of messages that were postponed without an attempt, by the paused relay. */
  readonly postponed: ReadonlyMap<string, Set<string>>;
}

const nothing: Claims = { claimed: [], postponed: new Map() };

/** Claims due deliveries of every lane with free slots; postpones those of paused relays. */
async function claim(context: RelayContext, running: Running): Promise<Claims> {
  const { clock, limits, storage } = context;
  if (running.size >= limits.deliveryConcurrency) return nothing;
  const now = clock.now();
  const due = (await storage.read(readLanes))
    .filter(({ nextAttemptAt }) => nextAttemptAt <= now)
    .map(({ destination }) => ({ destination, pausedUntil: pauseOf(context, destination, now) }))
    .filter(
      ({ destination, pausedUntil }) =>
        pausedUntil !== undefined || freeSlots(limits, destination, running) > 0,
    )
    // Lanes with nothing under way come first when slots are few.
    .sort((a, b) => running.of(a.destination) - running.of(b.destination));
  if (due.length === 0) return nothing;
  return await storage.write(deliveryJobName, async (tx) => {
    const claimed: ClaimedDelivery[] = [];
    const postponed = new Map<string, Set<string>>();
    for (const { destination, pausedUntil } of due) {
      if (pausedUntil !== undefined) {
        const batch = { destination, now, batchSize: limits.deliveryBatch };
        postponed.set(destination, await postponeLane(tx, batch, pausedUntil));
      }
      const free = freeSlots(limits, destination, running, claimed.length);
      const isPaused = pausedUntil !== undefined;
      claimed.push(...(await claimInLane(context, tx, { destination, isPaused, now, free })));
    }
    return { claimed, postponed };
  });
}

function pauseOf(
  { relayClient }: RelayContext,
  destination: string,
  now: number,
): number | undefined {
  if (destination === unlocated) return undefined;
  const until = relayClient.pausedUntil(destination);
  return until !== undefined && until > now ? until : undefined;
}

/**
 * Returns how many more deliveries of a lane may start. The last quarter of all slots is for lanes
 * with nothing under way, so that a few hanging relays do not delay the others.
 *
 * @param claimed deliveries of other lanes that are about to start
 */
function freeSlots(
  limits: RelayLimits,
  destination: string,
  running: Running,
  claimed = 0,
): number {
  const free = limits.deliveryConcurrency - running.size - claimed;
  const full = destination === unlocated ? limits.deliveryLookups : limits.deliveriesPerRelay;
  const own = running.of(destination);
  const first = own === 0 ? Math.min(1, free) : 0;
  const reserved = Math.floor(limits.deliveryConcurrency / 4);
  return first + Math.max(0, Math.min(full - own, free - reserved) - first);
}

interface DueLane {
  readonly destination: string;
  readonly isPaused: boolean;
  readonly now: number;
  /** Deliveries that may start. */
  readonly free: number;
}

async function claimInLane(
  { identity, limits }: RelayContext,
  tx: Writer,
  { destination, isPaused, now, free }: DueLane,
): Promise<ClaimedDelivery[]> {
  if (free === 0) return [];
  return await claimDue(tx, {
    ...{ destination, now, leaseUntil: now + limits.deliveryLease, batchSize: free },
    // Of a paused relay only what ends now.
    deadlineBy: isPaused ? now : Number.MAX_SAFE_INTEGER,
    isHome: async (recipient) => {
      const home = await homeOf(tx, recipient, identity.relayId, now);
      return home.kind === 'elsewhere' && home.relayId === destination;
    },
  });
}

/** Attempts a delivery; after a fault of this relay it is due again when its lease ends. */
async function attemptSafely(context: RelayContext, delivery: ClaimedDelivery): Promise<void> {
  try {
    await attempt(context, delivery);
  } catch (error) {
    deliveryFailed(context, { messageId: delivery.messageId, error });
  }
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
  const { clock, jobs, limits, storage } = context;
  const batchSize = limits.deliveryBatch;
  for (let woken = batchSize; woken === batchSize; ) {
    const batch = { destination: relayId, now: clock.now(), batchSize };
    woken = await storage.write(deliveryJobName, (tx) => wakeLane(tx, batch));
  }
  jobs.wake(deliveryJobName);
}
