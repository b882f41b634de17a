import { kadTypes } from '@posthouse/protocol/federation';
import type { Job } from '../../context.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import type { DhtRoutes } from './routes.ts';

/** Relays outside the table that are asked in one run whether they answer again, in turn. */
const asksOfRun = 16;

/**
 * Makes the job that fills the routing table and keeps it current: at the start, and at intervals, it
 * looks up the own Peer ID and a random key of each bucket (07 §B5). In a network in which each
 * question goes to all relays, there is nothing that lookups could find. While fewer relays answer
 * than a bucket has, as at the start before any was reached, the next run comes sooner.
 */
export function tableJob({
  routes,
  self,
  stopping,
}: {
  readonly routes: DhtRoutes;
  /** Own Peer ID, multihash bytes. */
  readonly self: Uint8Array;
  readonly stopping: AbortSignal;
}): Job {
  /** The relay outside the table that was asked last. */
  let last = '';
  /** Runs in a row in which few relays answered. */
  let poorRuns = 0;
  return {
    name: 'federation.table',
    async run({ clock, limits, random, registryStatus }, signal) {
      const [chance = 0] = random(1);
      // Relays that started together do not go on together.
      const pause = Math.round(limits.dhtTableRefresh * (0.9 + chance / 255 / 5));
      const next = clock.now() + pause;
      // All others would refuse this relay.
      if (!(await registryStatus.isActive())) return clock.now() + limits.remoteRetryFirst;
      for (const peer of inTurn(routes.table.outside(), last).slice(0, asksOfRun)) {
        if (signal.aborted || stopping.aborted) return next;
        last = peer.relayId;
        await routes.isAnswering(peer);
      }
      if (routes.asksAll) return next;
      const { nearest } = await routes.lookUp({ type: kadTypes.findNode, key: self });
      for (const key of routes.table.refreshInputs(random)) {
        if (signal.aborted || stopping.aborted) return next;
        await routes.lookUp({ type: kadTypes.findNode, key });
      }
      poorRuns = nearest.length < limits.dhtBucket ? poorRuns + 1 : 0;
      if (poorRuns === 0) return next;
      const sooner = limits.remoteRetryFirst * 2 ** Math.min(poorRuns - 1, 20);
      return clock.now() + Math.min(pause, sooner);
    },
  };
}

/**
 * Sorts relays by ID, those after the last one first: some stay outside although they answer, for
 * want of room, and must not keep the others from being asked.
 */
function inTurn(relays: readonly EligiblePeer[], last: string): EligiblePeer[] {
  const sorted = relays.toSorted((a, b) => (a.relayId < b.relayId ? -1 : 1));
  const first = sorted.findIndex(({ relayId }) => relayId > last);
  return first < 0 ? sorted : [...sorted.slice(first), ...sorted.slice(0, first)];
}
