import { compareDistance, hex, utf8 } from '@posthouse/protocol';
import {
  type CompleteKadRecord,
  dhtDistance,
  type KadCandidate,
  type KadMessage,
  type KadRequest,
  kadTypes,
  peerIdOfKey,
  RoutingTable,
} from '@posthouse/protocol/federation';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import { describe, expect, test } from 'vitest';
import { type DhtPeer, IterativeLookups } from '../../src/federation/dht/iterative-lookup.ts';
import { Publications, replicaPolicy } from '../../src/federation/dht/publication.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import { ManualClock } from '../support/clock.ts';

const key = primitives.sha256(utf8('a route'));
const record: CompleteKadRecord = { key, value: utf8('{}') };
const getValue: KadRequest = { type: kadTypes.getValue, key };
const never = new AbortController().signal;

interface Node extends DhtPeer {
  readonly id: string;
  readonly relayId: string;
}

const nodeOf = (label: string): Node => {
  const data = primitives.sha256(utf8(label));
  const peerId = peerIdOfKey(primitives, { type: 'ed25519', data });
  return { peerId, id: hex(peerId), relayId: label };
};

/** A network in memory; each relay's table was filled from the registry in random order. */
function memoryNetwork(count: number, limits: Partial<RelayLimits> = {}) {
  const clock = new ManualClock();
  const nodes = Array.from({ length: count }, (_, index) => nodeOf(`relay ${index}`));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const sorted = [...nodes].sort((a, b) =>
    compareDistance(dhtDistance(primitives, key, a.peerId), dhtDistance(primitives, key, b.peerId)),
  );
  const tables = new Map(
    nodes.map((node) => {
      const table = new RoutingTable<Node>(primitives, { self: node.peerId, bucketSize: 20 });
      for (const other of nodes) table.insert(other);
      return [node.id, table];
    }),
  );
  const silent = new Set<string>();
  const closed = new Set<string>();
  const answers = new Map<string, Partial<KadMessage>>();
  const asked: Node[] = [];
  const authenticated: KadCandidate[] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  const [self] = nodes as [Node];
  const ask = async (node: Node, request: KadRequest, signal: AbortSignal) => {
    asked.push(node);
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    await Promise.resolve();
    if (silent.has(node.id)) await new Promise((done) => signal.addEventListener('abort', done));
    atOnce -= 1;
    if (silent.has(node.id) || closed.has(node.id)) return undefined;
    const nearest = tables.get(node.id)?.closest(request.key, 20) ?? [];
    const closerPeers = nearest.map(({ peerId }) => ({ id: peerId, addrs: [] }));
    const { type } = request;
    return { type, key, closerPeers, ...answers.get(node.id) } as KadMessage;
  };
  const parts = {
    primitives,
    clock,
    limits: { ...defaultLimits, ...limits },
    self: self.peerId,
    network: {
      closest: (raw: Uint8Array, most: number) => tables.get(self.id)?.closest(raw, most) ?? [],
      candidate: async (candidate: KadCandidate) => {
        authenticated.push(candidate);
        return byId.get(hex(candidate.peerId));
      },
      ask,
    },
  };
  const lookups = new IterativeLookups<Node>(parts);
  const publications = new Publications<Node>(parts);
  const seen = { asked, authenticated, mostAtOnce: () => mostAtOnce };
  return {
    clock,
    self,
    nodes,
    sorted,
    tables,
    silent,
    closed,
    answers,
    lookups,
    publications,
    seen,
  };
}

describe('07 §B7: a lookup', () => {
  test('ends with the nearest relays of the whole network, three asked at once', async () => {
    const { lookups, sorted, self, seen } = memoryNetwork(300);
    const { outcome, nearest, requests } = await lookups.run({ request: getValue, signal: never });
    expect(outcome).toBe('complete');
    expect(nearest).toEqual(sorted.filter((node) => node !== self).slice(0, 20));
    expect(requests).toBe(seen.asked.length);
    expect(requests).toBeLessThanOrEqual(40);
    expect(seen.mostAtOnce()).toBe(3);
  });

  test('has every record of the relays that were asked, and waits until each was taken', async () => {
    const { lookups, sorted, self, answers } = memoryNetwork(300);
    const others = sorted.filter((node) => node !== self);
    for (const node of others.slice(3, 8)) answers.set(node.id, { record });
    const taken: Node[] = [];
    const onRecord = async (node: Node) => {
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
      taken.push(node);
    };
    await lookups.run({ request: getValue, onRecord, signal: never });
    expect(new Set(taken)).toEqual(new Set(others.slice(3, 8)));
  });

  test('one that hangs has three seconds; others are asked meanwhile', async () => {
    const { lookups, sorted, self, silent, clock, seen } = memoryNetwork(100);
    const others = sorted.filter((node) => node !== self);
    const [first] = others as [Node];
    silent.add(first.id);
    const run = lookups.run({ request: getValue, signal: never });
    await expect.poll(() => seen.asked.length).toBe(21);
    clock.advance(3);
    const { outcome, nearest, failed } = await run;
    expect([outcome, failed]).toEqual(['complete', [first]]);
    expect(nearest).toEqual(others.slice(1, 21));
  });

  test('ends after ten seconds with those that answered', async () => {
    const { lookups, nodes, silent, clock, seen } = memoryNetwork(100, {
      dhtQuestionTimeout: 60_000,
    });
    for (const node of nodes) silent.add(node.id);
    const run = lookups.run({ request: getValue, signal: never });
    await expect.poll(() => seen.asked.length).toBe(3);
    clock.advance(10);
    expect(await run).toMatchObject({ outcome: 'exhausted', nearest: [] });
    const before = seen.asked.length;
    await new Promise(setImmediate);
    expect(seen.asked).toHaveLength(before);
  });

  test('40 requests are made at the most', async () => {
    const { lookups, sorted, closed, seen } = memoryNetwork(300);
    for (const node of sorted.slice(0, 200)) closed.add(node.id);
    const { outcome, requests } = await lookups.run({ request: getValue, signal: never });
    expect([outcome, requests, seen.asked.length]).toEqual(['exhausted', 40, 40]);
  });

  test('a relay that invents peers near the key hides none of the others', async () => {
    const { lookups, sorted, self, answers } = memoryNetwork(100);
    const others = sorted.filter((node) => node !== self);
    const invented = Array.from({ length: 3_000 }, (_, index) => nodeOf(`invented ${index}`))
      .map((node) => ({ node, distance: dhtDistance(primitives, key, node.peerId) }))
      .sort((a, b) => compareDistance(a.distance, b.distance))
      .slice(0, 20)
      .map(({ node }) => ({ id: node.peerId, addrs: [] }));
    answers.set((others[0] as Node).id, { closerPeers: invented });
    answers.set((others[5] as Node).id, { record });
    const taken: Node[] = [];
    const onRecord = async (node: Node) => void taken.push(node);
    await lookups.run({ request: getValue, onRecord, signal: never });
    expect(taken).toEqual([others[5]]);
  });

  test('a failure of the parts is thrown, and the signal ends the lookup', async () => {
    const { lookups, sorted, self, answers, silent } = memoryNetwork(30);
    const others = sorted.filter((node) => node !== self);
    answers.set((others[2] as Node).id, { record });
    const onRecord = () => Promise.reject(new Error('no storage'));
    const failing = lookups.run({ request: getValue, onRecord, signal: never });
    await expect(failing).rejects.toThrow('no storage');
    for (const node of others) silent.add(node.id);
    const stopping = new AbortController();
    const run = lookups.run({ request: getValue, signal: stopping.signal });
    stopping.abort(new Error('the relay is stopping'));
    await expect(run).rejects.toThrow('the relay is stopping');
  });
});

describe('07 §B12: a publication', () => {
  const task = (targets: readonly Node[], enough = 3) => ({
    ...{ record, targets, enough, signal: never },
    within: defaultLimits.dhtPublishTimeout,
  });

  test('is answered as soon as three relays echoed the exact record; the others go on', async () => {
    const { publications, sorted, answers, silent, clock } = memoryNetwork(30);
    const targets = sorted.slice(0, 6);
    for (const node of targets) answers.set(node.id, { record });
    silent.add((targets[0] as Node).id);
    const { isEnough, stored } = await publications.publish(task(targets));
    expect(isEnough).toBe(true);
    clock.advance(3);
    expect(await stored).toEqual(targets.slice(1));
  });

  test.each([
    ['no record', {}],
    ['another record', { record: { key, value: utf8('{} ') } }],
    ['an empty record', { record: { key, value: new Uint8Array() } }],
  ])('%s is no echo', async (_, answer) => {
    const { publications, sorted, answers } = memoryNetwork(30);
    const targets = sorted.slice(0, 3);
    for (const node of targets) answers.set(node.id, { record });
    answers.set((targets[1] as Node).id, answer);
    const { isEnough, stored } = await publications.publish(task(targets));
    expect(isEnough).toBe(false);
    expect(await stored).toHaveLength(2);
    expect((await publications.publish(task(targets, 2))).isEnough).toBe(true);
  });

  test('is missed after 15 seconds', async () => {
    const { publications, sorted, silent, clock } = memoryNetwork(30, {
      dhtQuestionTimeout: 60_000,
    });
    for (const node of sorted.slice(0, 3)) silent.add(node.id);
    const published = publications.publish(task(sorted.slice(0, 3)));
    clock.advance(15);
    expect((await published).isEnough).toBe(false);
  });

  test('the policy is three replicas, fewer if there are fewer other relays', () => {
    expect([0, 1, 2, 3, 4].map((others) => replicaPolicy(defaultLimits, others))).toEqual([
      0, 1, 2, 3, 3,
    ]);
  });
});
