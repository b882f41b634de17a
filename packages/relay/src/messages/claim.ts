/** Which queued deliveries this process attempts next. */
import { homeOf } from '../accounts/index.ts';
import type { Home, RelayContext } from '../context.ts';
import { forEach } from '../storage/in-lists.ts';
import type { Writer } from '../storage/types.ts';
import { postponeLane, readLanes, unlocated } from './lane-store.ts';
import { type Outcome, storeOutcome } from './outcomes.ts';
import { type ClaimedDelivery, claimDue } from './queue-store.ts';
import { deliveryJobName } from './rules.ts';

/** Counts the deliveries under way, by destination. */
export class Running {
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

/** What one look at the lanes gave. */
interface Claims {
  readonly claimed: readonly ClaimedDelivery[];
  /** Recipients of messages that were postponed without an attempt, by the paused relay. */
  readonly postponed: ReadonlyMap<string, Set<string>>;
}

const nothing: Claims = { claimed: [], postponed: new Map() };

/**
 * Claims due deliveries of every lane with free slots and postpones those of paused relays, in one
 * transaction that also stores the outcomes of attempts.
 */
export async function storeAndClaim(
  context: RelayContext,
  running: Running,
  { outcomes, mayClaim }: { readonly outcomes: readonly Outcome[]; readonly mayClaim: boolean },
): Promise<Claims> {
  const { clock, limits, storage } = context;
  const now = clock.now();
  const due = mayClaim ? await findDue(context, running, now) : [];
  if (due.length === 0 && outcomes.length === 0) return nothing;
  return await storage.write(deliveryJobName, async (tx) => {
    await forEach(outcomes, (outcome) => storeOutcome(context, tx, outcome));
    const claimed: ClaimedDelivery[] = [];
    const postponed = new Map<string, Set<string>>();
    for (const { destination, pausedUntil } of due) {
      if (pausedUntil !== undefined) {
        const batch = { destination, now, batchSize: limits.deliveryBatch };
        postponed.set(destination, await postponeLane(tx, batch, pausedUntil));
      }
      const free = freeSlots(context, destination, running, claimed.length);
      const isPaused = pausedUntil !== undefined;
      claimed.push(...(await claimInLane(context, tx, { destination, isPaused, now, free })));
    }
    return { claimed, postponed };
  });
}

/** A lane with deliveries that are due. */
interface DueLane {
  readonly destination: string;
  readonly pausedUntil: number | undefined;
}

/** Finds lanes with due deliveries that may be claimed or must be postponed. */
async function findDue(context: RelayContext, running: Running, now: number): Promise<DueLane[]> {
  const { limits, storage } = context;
  if (running.size >= limits.deliveryConcurrency) return [];
  return (
    (await storage.read(readLanes))
      .filter(({ nextAttemptAt }) => nextAttemptAt <= now)
      .map(({ destination }) => ({ destination, pausedUntil: pauseOf(context, destination, now) }))
      .filter(
        ({ destination, pausedUntil }) =>
          pausedUntil !== undefined || freeSlots(context, destination, running) > 0,
      )
      // Lanes with nothing under way come first when slots are few.
      .sort((a, b) => running.of(a.destination) - running.of(b.destination))
  );
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
 * Returns how many more deliveries of a lane may start. An eighth of the calls that a relay allows, and
 * at least one of two or more, is for queries, which wait for no delivery then. The last quarter of all slots is for lanes
 * with nothing under way, so that a few hanging relays do not delay the others. Of the rest, a lane takes
 * one more while it has at most twice as many as are free: so the messages to another relay need not
 * go one after another, whatever those few hold.
 *
 * @param claimed deliveries of other lanes that are about to start
 */
function freeSlots(
  { limits, relayClient }: Pick<RelayContext, 'limits' | 'relayClient'>,
  destination: string,
  running: Running,
  claimed = 0,
): number {
  const free = limits.deliveryConcurrency - running.size - claimed;
  const full =
    destination === unlocated
      ? limits.deliveryLookups
      : Math.min(
          limits.deliveriesPerRelay,
          Math.max(1, Math.floor((relayClient.callsAtOnce(destination) * 7) / 8)),
        );
  const own = running.of(destination);
  const first = own === 0 ? Math.min(1, free) : 0;
  const shared = free - Math.floor(limits.deliveryConcurrency / 4);
  const share = Math.floor((2 * shared - own) / 3) + 1;
  return Math.max(0, first, Math.min(full - own, shared, share));
}

interface LaneClaim {
  readonly destination: string;
  readonly isPaused: boolean;
  readonly now: number;
  /** Deliveries that may start. */
  readonly free: number;
}

async function claimInLane(
  { identity, limits }: RelayContext,
  tx: Writer,
  { destination, isPaused, now, free }: LaneClaim,
): Promise<ClaimedDelivery[]> {
  if (free === 0) return [];
  const homes = new Map<string, Promise<Home>>();
  return await claimDue(tx, {
    ...{ destination, now, leaseUntil: now + limits.deliveryLease, batchSize: free },
    // Of a paused relay only what ends now.
    deadlineBy: isPaused ? now : Number.MAX_SAFE_INTEGER,
    isHome: async (recipient) => {
      const found = homes.get(recipient) ?? homeOf(tx, recipient, identity.relayId, now);
      homes.set(recipient, found);
      const home = await found;
      return home.kind === 'elsewhere' && home.relayId === destination;
    },
  });
}
