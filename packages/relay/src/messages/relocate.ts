/** Finds recipients that left a relay which is not reached (04 section 16.3). */
import { locate } from '../accounts/index.ts';
import type { RelayContext } from '../context.ts';
import { moveToLane, unlocated } from './lane-store.ts';
import { deliveryJobName } from './rules.ts';

/** A lane whose relay is sent nothing for a while. */
export interface PausedLane {
  readonly destination: string;
  /** Recipients of messages there that no relay may have received; more may be added. */
  readonly recipients: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/**
 * Locates recipients one after another, each at most once in `routeCache` seconds, and moves their
 * messages to the lane of the relay that a higher route names; to that of recipients to locate if
 * they came home here.
 */
export async function relocate(
  context: RelayContext,
  { destination, recipients, signal }: PausedLane,
): Promise<void> {
  const { clock, limits, storage } = context;
  for (const recipient of recipients) {
    if (signal.aborted) return;
    const home = await locate(context, recipient, { now: clock.now() });
    if (home.kind !== 'local' && home.kind !== 'elsewhere') continue;
    const relayId = home.kind === 'local' ? unlocated : home.relayId;
    if (relayId === destination) continue;
    const batch = { destination, now: clock.now(), batchSize: limits.deliveryBatch };
    await storage.write(deliveryJobName, (tx) => moveToLane(tx, batch, { recipient, relayId }));
  }
}
