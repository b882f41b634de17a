import type { Job } from '../context.ts';
import { digest } from '../digest.ts';
import type { PeerConnections } from './connections.ts';
import type { Eligibility } from './eligibility.ts';
import type { RelayHealth } from './relay-health.ts';

/** Woken when the registry lists a relay that it did not list before. */
export const peersJobName = 'federation.peers';

/** Seconds between two runs: another process or the operator's command may have ended a pause. */
const intervals = { failing: 15, well: 60 } as const;

/** Dials under way at once. */
const dialsAtOnce = 8;

/**
 * Makes the job that keeps connections with the active relays of the registry, so that a relay that
 * comes back is noticed, and that a call does not wait for a handshake (07 §B5).
 */
export function peersJob({
  eligibility,
  connections,
  health,
  stopping,
}: {
  readonly eligibility: Eligibility;
  readonly connections: PeerConnections;
  readonly health: RelayHealth;
  readonly stopping: AbortSignal;
}): Job {
  return {
    name: peersJobName,
    async run({ clock, identity, limits, registryStatus }, signal) {
      await health.adopt();
      // All others would refuse this relay; its own record is the first thing to confirm.
      if (!(await registryStatus.isActive())) return clock.now() + intervals.failing;
      const candidates = eligibility.candidates();
      // Half of the room is left for relays that connect to this one, and for lookups.
      connections.retireUnused(Math.floor(limits.peerConnections / 2));
      health.forgetUnlisted(new Set(candidates));
      const ended = AbortSignal.any([signal, stopping]);
      const missing = candidates.filter((relayId) => !connections.isConnected(relayId));
      const ready = missing.filter((relayId) => health.pausedUntil(relayId) === undefined);
      // Not those that every other relay chooses too, if there are more than are kept.
      const isLarge = candidates.length > limits.peersConnected;
      const due = isLarge ? spread(ready, identity.relayId) : ready;
      while (due.length > 0 && !ended.aborted) {
        const room = limits.peersConnected - connections.connected;
        const batch = due.splice(0, Math.min(dialsAtOnce, room));
        if (batch.length === 0) break;
        // A failure is recorded with the relay, which is tried again after its pause.
        await Promise.allSettled(batch.map((relayId) => connections.dials.dial(relayId, ended)));
      }
      const next = health.nextRetry();
      if (next === undefined) return clock.now() + intervals.well;
      return Math.min(Math.max(next, clock.now() + 1), clock.now() + intervals.failing);
    },
  };
}

/** Returns relays in an order of this relay's own, which is always the same. */
function spread(relays: readonly string[], own: string): string[] {
  // Texts that sort by themselves: a comparison of ten thousand would hold the event loop.
  const placed = relays.map((relayId) => `${digest(`${own} ${relayId}`)} ${relayId}`).sort();
  return placed.map((text) => text.slice(text.indexOf(' ') + 1));
}
