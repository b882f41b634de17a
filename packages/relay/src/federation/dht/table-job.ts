import { kadTypes } from '@posthouse/protocol/federation';
import type { Job } from '../../context.ts';
import type { DhtRoutes } from './routes.ts';

/** Relays outside the table that are asked in one run whether they answer again. */
const asksOfRun = 16;

/**
 * Makes the job that fills the routing table and keeps it current: at the start, and at intervals, it
 * looks up the own Peer ID and a random key of each bucket (07 §B5). In a network in which each
 * question goes to all relays, there is nothing that lookups could find.
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
  return {
    name: 'federation.table',
    async run({ clock, limits, random, registryStatus }, signal) {
      const [chance = 0] = random(1);
      // Relays that started together do not go on together.
      const next = clock.now() + Math.round(limits.dhtTableRefresh * (0.9 + chance / 255 / 5));
      // All others would refuse this relay.
      if (!(await registryStatus.isActive())) return clock.now() + limits.remoteRetryFirst;
      for (const peer of routes.table.outside().slice(0, asksOfRun)) {
        if (!signal.aborted && !stopping.aborted) await routes.isAnswering(peer);
      }
      if (routes.asksAll) return next;
      for (const key of [self, ...routes.table.refreshInputs(random)]) {
        if (signal.aborted || stopping.aborted) return next;
        await routes.lookUp({ type: kadTypes.findNode, key });
      }
      return next;
    },
  };
}
