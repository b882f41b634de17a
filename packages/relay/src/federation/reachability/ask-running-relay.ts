import { setTimeout as delay } from 'node:timers/promises';
import { hex } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import type { Storage } from '../../storage/types.ts';
import { knownRelays } from '../store.ts';
import type { ReachabilityReport } from './reachability-check.ts';
import { deleteRequest, putRequest, readRequest } from './request-store.ts';

/** Milliseconds between two readings of the answer. */
const interval = 200;

/** Milliseconds until a running relay takes the request, and until it has answered then. */
const patience = { take: 15_000, answer: 60_000 } as const;

export type RunningRelayAnswer =
  | { readonly kind: 'report'; readonly report: ReachabilityReport }
  /** No process of the relay runs with `federation.listen`, or none reads the database. */
  | { readonly kind: 'not_taken' }
  | { readonly kind: 'no_answer' };

/**
 * Asks the running relay, from another process with its database, to find out from other relays
 * whether they reach it.
 *
 * @param now Unix seconds
 * @throws Error if other commands wait for the same, or storage fails
 */
export async function askRunningRelay(storage: Storage, now: number): Promise<RunningRelayAnswer> {
  const id = hex(nodeRandom(16));
  await putRequest(storage, { id, now });
  try {
    for (let waited = 0; waited < patience.answer; waited += interval) {
      const state = await storage.read((tx) => readRequest(tx, id));
      if (state?.report !== undefined) {
        return { kind: 'report', report: JSON.parse(state.report) as ReachabilityReport };
      }
      if (state?.isTaken !== true && waited >= patience.take) return { kind: 'not_taken' };
      await delay(interval);
    }
    return { kind: 'no_answer' };
  } finally {
    await storage.write(knownRelays, (tx) => deleteRequest(tx, id));
  }
}
