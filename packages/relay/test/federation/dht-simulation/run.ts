/** Runs one simulation of the DHT. */
import type { Found } from './dht-relay.ts';
import { type DhtSimulation, DhtWorld, hour } from './dht-world.ts';
import { live } from './life.ts';

export interface DhtRun {
  readonly failure: Error | undefined;
  /** Digest of everything that happened. */
  readonly digest: string;
  /** The newest lines of what happened. */
  readonly last: readonly string[];
  /** Real seconds. */
  readonly seconds: number;
  readonly requests: number;
  readonly lookups: readonly Found[];
  /** Records sent in the busiest ten seconds. */
  readonly busiest: number;
}

export interface DhtRunOptions extends DhtSimulation {
  /** Relays that look up each account at each check. */
  readonly finders: number;
  /** Hours between two refreshes of a routing table. */
  readonly refresh: number;
}

export async function runDht({ finders, refresh, ...simulation }: DhtRunOptions): Promise<DhtRun> {
  const began = performance.now();
  const world = new DhtWorld(simulation);
  let failure: Error | undefined;
  try {
    await live(world, { finders, refreshInterval: refresh * hour });
  } catch (error) {
    failure = error as Error;
  }
  const { journal, requests, lookups, busiest } = world;
  const seconds = (performance.now() - began) / 1_000;
  const { last } = journal;
  return { failure, digest: journal.digest(), last, seconds, requests, lookups, busiest };
}
