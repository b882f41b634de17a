/** Six whole relays with buckets of two: lookups go over the routing table and named peers. */
import type { JsonObject } from '@posthouse/protocol/json';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../fixtures/person.ts';
import { patience, ServedNetwork } from '../support/served-network.ts';
import type { ServedRelay } from '../support/served-relay.ts';

const limits = { dhtBucket: 2, dhtReplicas: 2, dhtCloserPeers: 2, dhtLookupRequests: 12 };
let network: ServedNetwork;

beforeAll(async () => {
  network = await ServedNetwork.start(6, { limits });
});
afterAll(() => network[Symbol.asyncDispose]());

const resolve = async (relay: ServedRelay, { account }: Person) =>
  (await relay.call('account.route.resolve', { account })) as JsonObject;

/** The relays that have the account's route in storage. */
async function holders({ account }: Person): Promise<ServedRelay[]> {
  const found = await Promise.all(
    network.relays.map((relay) =>
      relay.server.context.storage.read((tx) =>
        tx.get('SELECT account FROM account_routes WHERE account = ?', account),
      ),
    ),
  );
  return network.relays.filter((_, index) => found[index] !== undefined);
}

test('07 §B7, §B12: a route is stored by the nearest relays, and found by all that never saw it', async () => {
  const [home] = network.pair;
  const people = [];
  for (const name of ['ann', 'ben', 'cem', 'dan']) people.push(await home.register(name));
  for (const person of people) {
    const stored = await holders(person);
    expect(stored).toContain(home);
    expect(stored.length).toBe(3);
    for (const relay of network.relays) {
      expect(await resolve(relay, person)).toMatchObject({ relay_id: home.relayId });
    }
  }
  const { metrics } = home.server.context;
  expect(metrics.value('dht_lookups', { outcome: 'complete' })).toBeGreaterThan(0);
  expect(metrics.value('route_replicas')).toBe(8);
});

test('07 §B12: copies that were lost are there again after the republication', async () => {
  const [home] = network.pair;
  const ann = await home.register('ann again');
  const others = (await holders(ann)).filter((relay) => relay !== home);
  for (const { server } of others) {
    await server.context.storage.write(`account:${ann.account}`, (tx) =>
      tx.run('DELETE FROM account_routes WHERE account = ?', ann.account),
    );
  }
  expect(await holders(ann)).toEqual([home]);
  for (const relay of network.relays) relay.clock.advance(43_200);
  home.server.wakeJobs();
  await expect.poll(async () => (await holders(ann)).length, patience).toBe(3);
});

test('07 §B12: while the home relay is away, others find the route at the relays that hold it', async () => {
  const home = network.relays[5] as ServedRelay;
  const eve = await home.register('eve');
  const stored = await holders(eve);
  const { relayId } = home;
  await home.stop();
  for (const relay of network.relays.slice(0, 5)) {
    if (stored.includes(relay)) continue;
    expect(await resolve(relay, eve)).toMatchObject({ relay_id: relayId });
  }
  await home.restart();
});
