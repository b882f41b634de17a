/** Rules of the simulated DHT that are checked at certain times. */
import { deriveRouteKey } from '@posthouse/protocol/federation';
import { parseJson } from '@posthouse/protocol/json';
import { network } from '../../support/modules.ts';
import { type DhtRelay, type Found, valueLife } from './dht-relay.ts';
import { type Account, type DhtWorld, hour, shuffled, start } from './dht-world.ts';

/** Milliseconds after which every home relay has republished its routes: 12 h and a tenth, and a pause. */
export const republished = 13.5 * hour;

/** Runs work as a part of a relay's process; `undefined` if the process ends before. */
async function call<T>(
  world: DhtWorld,
  relay: DhtRelay,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  using _end = relay.process?.onEnd(() => resolve(undefined));
  world.within(relay, async () => resolve(await work()));
  return await promise;
}

/**
 * Every account's newest route is found by relays that never saw the account, and none returns
 * another one (07 §B12).
 *
 * @param finders relays that look up each account
 */
export async function checkFound(world: DhtWorld, finders: number, when: string): Promise<void> {
  for (const account of world.accounts) {
    const relays = strangersTo(world, account).slice(0, finders);
    await Promise.all(relays.map((relay) => checkFinds(world, relay, { account, when })));
  }
}

/** Honest relays in random order: those that never saw the account come first. */
function strangersTo({ honest, chance }: DhtWorld, { signer }: Account): DhtRelay[] {
  const mixed = shuffled(honest, chance);
  const isKnown = (relay: DhtRelay) => relay.memory.has(signer.account);
  return [...mixed.filter((relay) => !isKnown(relay)), ...mixed.filter(isKnown)];
}

async function checkFinds(
  world: DhtWorld,
  relay: DhtRelay,
  { account, when }: { readonly account: Account; readonly when: string },
): Promise<void> {
  const found = await resolve(world, relay, account);
  if (found === undefined) return;
  const now = start + Math.floor(world.scheduler.milliseconds / 1_000);
  const { revision, expires_at } = account.route;
  const expected = now >= expires_at ? undefined : revision;
  world.journal.record(`${relay.name} found ${account.name} ${found.route?.revision}`);
  world.journal.must(found.route?.revision === expected, () => {
    const what = `${found.route?.revision} of ${account.name}, not ${expected}`;
    return `${when}: ${relay.name} found ${what}; ${found.requests} requests`;
  });
}

export async function resolve(
  world: DhtWorld,
  relay: DhtRelay,
  { signer }: Account,
): Promise<Found | undefined> {
  const found = await call(world, relay, () => relay.resolve(signer.account, world.stop.signal));
  return found && world.noted(found);
}

/** No honest relay serves a route that another one has replaced for so long, or that has expired. */
export function checkServed(world: DhtWorld): void {
  const { milliseconds } = world.scheduler;
  const now = start + Math.floor(milliseconds / 1_000);
  for (const { signer, name, route, since } of world.accounts) {
    const isOld = milliseconds - since > republished + valueLife * 1_000;
    const key = deriveRouteKey(network, signer.account);
    for (const relay of world.honest) {
      const value = relay.value(key);
      if (value === undefined) continue;
      const served = parseJson(Buffer.from(value).toString()) as { revision: number };
      world.journal.must(now < route.expires_at, () => `${relay.name} serves ${name}, expired`);
      world.journal.must(
        !isOld || served.revision === route.revision,
        () => `${relay.name} serves an old route of ${name}`,
      );
    }
  }
}

/** What a relay knew of routes before it ended, it knows afterwards (07 §B11). */
export function checkMemory(world: DhtWorld, relay: DhtRelay): void {
  for (const { signer, name } of world.accounts) {
    const known = relay.memory.get(signer.account)?.revision ?? -1;
    world.journal.must(
      known >= world.highest(relay, signer.account),
      () => `${relay.name} forgot a route of ${name}`,
    );
  }
}

/** Routing tables have authenticated relays only (07 §B5). */
export function checkTables(world: DhtWorld): void {
  for (const relay of world.honest) {
    const invented = relay.tablePeers.filter((peerId) => world.relayOf(peerId) === undefined);
    world.journal.must(
      invented.length === 0,
      () => `${relay.name} has invented peers in its table`,
    );
  }
}

/** Republication is spread: no ten seconds have the requests of many accounts (07 §B12). */
export function checkSpread(world: DhtWorld): void {
  const accounts = 4 + world.options.accounts / 8;
  const bound = 25 * accounts;
  world.journal.must(world.busiest <= bound, () => `${world.busiest} records sent in ten seconds`);
}
