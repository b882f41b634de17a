import { utf8 } from '@posthouse/protocol';
import { peerIdOfKey } from '@posthouse/protocol/federation';
import { expect, test } from 'vitest';
import { DhtTable } from '../../src/federation/dht/table.ts';
import { tableJob } from '../../src/federation/dht/table-job.ts';
import { PeerSet } from '../../src/federation/peer-set.ts';
import type { EligiblePeer } from '../../src/federation/verify-descriptor.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';

const { primitives } = network;
const key = primitives.sha256(utf8('a route'));
const peerIdOf = (label: string) =>
  peerIdOfKey(primitives, { type: 'ed25519', data: primitives.sha256(utf8(label)) });
const lifetime = 1_000;

function tableOf(bucket = 20) {
  const clock = new ManualClock();
  const limits = { ...defaultLimits, dhtBucket: bucket };
  const log = { info: () => {}, warn: () => {}, debug: () => {} };
  const identity = { peerId: '' };
  const set = new PeerSet({ clock, limits, identity, log, metrics: new Metrics() } as never);
  const probed: string[] = [];
  const answering = new Set<string>();
  const table = new DhtTable(
    { network, limits },
    {
      eligibility: set,
      self: peerIdOf('self'),
      probe: async ({ relayId }) => {
        probed.push(relayId);
        await Promise.resolve();
        table.noteOutcome(relayId, answering.has(relayId));
        return answering.has(relayId);
      },
    },
  );
  const enter = (relayId: string, peerId = peerIdOf(relayId)) => {
    const descriptor = { expires_at: clock.now() + lifetime };
    set.enter({ relayId, peerId, descriptor, addresses: [] } as unknown as EligiblePeer);
  };
  const inTable = () => table.closest(key, 1_000).map(({ relayId }) => relayId);
  return { clock, set, table, enter, inTable, probed, answering };
}

test('07 §B5: the routing table has exactly the relays that are eligible now', () => {
  const { set, enter, inTable, clock } = tableOf();
  enter('a');
  enter('b');
  expect(inTable().sort()).toEqual(['a', 'b']);
  set.drop('a', 'not_active');
  expect(inTable()).toEqual(['b']);
  clock.advance(lifetime);
  expect(inTable()).toEqual([]);
});

test('07 §B5: a new Peer ID takes the place of the old one, never next to it', () => {
  const { set, enter, inTable, table } = tableOf();
  enter('a');
  set.drop('a', 'peer_id_changed');
  enter('a', peerIdOf('another key'));
  expect(inTable()).toEqual(['a']);
  expect(table.closest(key, 10)[0]?.peerId).toEqual(peerIdOf('another key'));
  expect(table.size).toBe(1);
});

test('07 §B6: after five failures in a row a relay is out of the table until it answers', () => {
  const { enter, inTable, table } = tableOf();
  enter('a');
  for (let count = 0; count < 4; count += 1) table.noteOutcome('a', false);
  table.noteOutcome('a', true);
  for (let count = 0; count < 4; count += 1) table.noteOutcome('a', false);
  expect(inTable()).toEqual(['a']);
  table.noteOutcome('a', false);
  expect(inTable()).toEqual([]);
  // A newer descriptor is no answer.
  enter('a');
  expect(inTable()).toEqual([]);
  expect(table.outside().map(({ relayId }) => relayId)).toEqual(['a']);
  table.noteOutcome('a', true);
  expect(inTable()).toEqual(['a']);
});

/** Relays of one bucket: whose position differs from the own one in the first bit. */
const ofFirstBucket = (() => {
  const [own = 0] = primitives.sha256(peerIdOf('self'));
  const labels = Array.from({ length: 40 }, (_, index) => `relay ${index}`);
  return labels.filter((label) => {
    const [first = 0] = primitives.sha256(peerIdOf(label));
    return (first ^ own) >= 128;
  });
})();

test('07 §B5: in a full bucket, the relay seen least recently makes room if it does not answer', async () => {
  const [one, two, three, four] = ofFirstBucket as [string, string, string, string];
  const { enter, inTable, probed, answering } = tableOf(2);
  answering.add(one).add(two);
  for (const relay of [one, two]) enter(relay);
  enter(three);
  await expect.poll(() => probed).toEqual([one]);
  await new Promise(setImmediate);
  expect(inTable().sort()).toEqual([one, two].sort());
  answering.delete(two);
  enter(four);
  await expect.poll(() => probed).toEqual([one, two]);
  await expect.poll(() => inTable().sort()).toEqual([one, four].sort());
});

test('07 §B5: relays that connect at once have one relay asked, not one each', async () => {
  const { enter, probed, answering } = tableOf(1);
  const [first, ...others] = ofFirstBucket as [string, ...string[]];
  answering.add(first);
  enter(first);
  for (const relay of others) enter(relay);
  await new Promise(setImmediate);
  expect(probed).toEqual([first]);
});

test('the table is refreshed at the start and at intervals, and not if all relays are asked', async () => {
  const { table, clock, enter } = tableOf();
  for (const relay of ofFirstBucket.slice(0, 4)) enter(relay);
  const never = new AbortController().signal;
  const self = peerIdOf('self');
  const looked: Uint8Array[] = [];
  const routes = {
    ...{ table, asksAll: false },
    nearest: Array.from({ length: defaultLimits.dhtBucket }),
    async lookUp({ key }: { key: Uint8Array }) {
      looked.push(key);
      return { nearest: routes.nearest };
    },
    isAnswering: async () => true,
  };
  const job = tableJob({ routes: routes as never, self, stopping: never });
  const context = {
    ...{ clock, limits: defaultLimits, random: (bytes: number) => new Uint8Array(bytes).fill(7) },
    registryStatus: { isActive: async () => true },
  };
  const run = () => job.run(context as never, never, () => ({ [Symbol.dispose]: () => {} }));
  const next = (await run()) as number;
  expect(looked[0]).toEqual(self);
  expect(next - clock.now()).toBeGreaterThanOrEqual(0.9 * defaultLimits.dhtTableRefresh);
  expect(next - clock.now()).toBeLessThanOrEqual(1.1 * defaultLimits.dhtTableRefresh);
  looked.length = 0;
  routes.asksAll = true;
  await run();
  expect(looked).toEqual([]);
  // At the start, before any relay was reached, few answer: the next runs come sooner.
  Object.assign(routes, { asksAll: false, nearest: [] });
  const pauses: number[] = [];
  for (let count = 0; count < 3; count += 1) pauses.push(((await run()) as number) - clock.now());
  expect(pauses).toEqual([30, 60, 120]);
});

test('07 §B5: every relay outside the table is asked in turn whether it answers again', async () => {
  const { table, clock, enter, answering } = tableOf(4);
  for (let count = 0; count < 60; count += 1) answering.add(`relay ${count}`);
  for (let count = 0; count < 60; count += 1) enter(`relay ${count}`);
  await new Promise(setImmediate);
  const outside = table.outside().map(({ relayId }) => relayId);
  expect(outside.length).toBeGreaterThan(32);
  const never = new AbortController().signal;
  const asked = new Set<string>();
  const routes = {
    ...{ table, asksAll: true },
    isAnswering: async ({ relayId }: EligiblePeer) => asked.add(relayId).size > 0,
  };
  const job = tableJob({ routes: routes as never, self: peerIdOf('self'), stopping: never });
  const context = {
    ...{ clock, limits: defaultLimits, random: (bytes: number) => new Uint8Array(bytes) },
    registryStatus: { isActive: async () => true },
  };
  for (let count = 0; count < Math.ceil(outside.length / 16); count += 1) {
    await job.run(context as never, never, () => ({ [Symbol.dispose]: () => {} }));
  }
  expect([...asked].sort()).toEqual(outside.sort());
});

test('07 §B5: a relay that connects again has one more attempt', () => {
  const { enter, inTable, table } = tableOf();
  enter('a');
  for (let count = 0; count < 5; count += 1) table.noteOutcome('a', false);
  expect(inTable()).toEqual([]);
  table.reconnected('a');
  expect(inTable()).toEqual(['a']);
  table.noteOutcome('a', false);
  expect(inTable()).toEqual([]);
  table.reconnected('a');
  table.noteOutcome('a', true);
  for (let count = 0; count < 4; count += 1) table.noteOutcome('a', false);
  expect(inTable()).toEqual(['a']);
});
