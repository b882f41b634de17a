import type { Job } from '../../context.ts';
import { knownRelays } from '../store.ts';
import type { ReachabilityCheck } from './reachability-check.ts';
import { findRequest, putReport, takeRequest } from './request-store.ts';

/**
 * Makes the job that serves requests of `posthouse doctor`: one at a time in each process, and each
 * by one process.
 */
export function reachabilityJob(check: Pick<ReachabilityCheck, 'run'>): Job {
  return {
    name: 'federation.reachability',
    async run({ clock, limits, storage }) {
      const id = await storage.read(findRequest);
      if (id !== undefined && (await storage.write(knownRelays, (tx) => takeRequest(tx, id)))) {
        const report = JSON.stringify(await check.run());
        await storage.write(knownRelays, (tx) => putReport(tx, id, report));
      }
      return clock.now() + limits.federationBlockCheck;
    },
  };
}
