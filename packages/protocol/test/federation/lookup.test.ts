import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dhtDistance, Lookup, peerIdOfKey, RoutingTable } from '../../src/federation/index.ts';
import { compareDistance, hex, utf8 } from '../../src/index.ts';
import { nodePrimitives as primitives } from '../../src/node/primitives.ts';

function peerOf(label: string): Uint8Array {
  return peerIdOfKey(primitives, { type: 'ed25519', data: primitives.sha256(utf8(label)) });
}

const bounds = { concurrency: 3, closest: 20, requests: 40 };
const self = peerOf('self');
const target = primitives.sha256(utf8('a route'));
/** Sorts peers by their distance to a lookup input, nearest first. */
const byDistance = (peers: readonly Uint8Array[], raw = target) =>
  peers
    .map((peer) => ({ peer, distance: dhtDistance(primitives, raw, peer) }))
    .sort((a, b) => compareDistance(a.distance, b.distance))
    .map(({ peer }) => peer);
const peers = byDistance(Array.from({ length: 60 }, (_, index) => peerOf(`peer ${index}`)));
const start = { self, target, bounds };
/** Peers that do not exist, near the target by trial, as an attacker finds them. */
const inventedNear = (count: number) =>
  byDistance(Array.from({ length: 2_000 }, (_, index) => peerOf(`invented ${index}`))).slice(
    0,
    count,
  );

describe('07 §B7: the iterative lookup', () => {
  test('asks the nearest first, as many at once as allowed', () => {
    const lookup = new Lookup(primitives, { ...start, peers: [...peers].reverse() });
    expect(lookup.next()).toEqual(peers.slice(0, 3));
    expect(lookup.next()).toEqual([]);
    lookup.failed(peers[1] as Uint8Array);
    expect(lookup.next()).toEqual([peers[3]]);
    expect([lookup.requests, lookup.done]).toEqual([4, false]);
  });

  test('is done when the nearest have answered, and has them in order', () => {
    const lookup = new Lookup(primitives, { ...start, peers });
    while (!lookup.done) for (const peer of lookup.next()) lookup.answered(peer, []);
    expect(lookup.requests).toBe(20);
    expect(lookup.nearest()).toEqual(peers.slice(0, 20));
  });

  test('failed peers are replaced by the next ones', () => {
    const lookup = new Lookup(primitives, { ...start, peers });
    const gone = new Set(peers.slice(0, 5).map(hex));
    while (!lookup.done) {
      for (const peer of lookup.next()) {
        if (gone.has(hex(peer))) lookup.failed(peer);
        else lookup.answered(peer, []);
      }
    }
    expect(lookup.nearest()).toEqual(peers.slice(5, 25));
  });

  test('an answer adds peers that are nearer; they are asked before most of the rest', () => {
    const far = peers.slice(40);
    const lookup = new Lookup(primitives, { ...start, peers: far });
    const [first, ...others] = lookup.next() as [Uint8Array, ...Uint8Array[]];
    lookup.answered(first, [self, peers[1] as Uint8Array, peers[0] as Uint8Array, first]);
    for (const peer of others) lookup.failed(peer);
    // The fourth request is one of those that go to a peer that the lookup began with.
    expect(lookup.next()).toEqual([far[3], peers[0], peers[1]]);
  });

  test('of one answer the nearest 20 peers are used', () => {
    const lookup = new Lookup(primitives, { ...start, peers: [peers[59] as Uint8Array] });
    for (const peer of lookup.next()) lookup.answered(peer, peers.slice(0, 50));
    let asked = 0;
    while (!lookup.done) {
      for (const peer of lookup.next()) {
        asked += 1;
        lookup.failed(peer);
      }
    }
    expect(asked).toBe(20);
  });

  test('an answer counts once, and only from a peer that was asked', () => {
    const lookup = new Lookup(primitives, { ...start, peers: peers.slice(0, 4) });
    lookup.answered(peers[0] as Uint8Array, [peers[5] as Uint8Array]);
    lookup.answered(peers[50] as Uint8Array, []);
    expect(lookup.nearest()).toEqual([]);
    const [first, second] = lookup.next() as [Uint8Array, Uint8Array];
    lookup.failed(first);
    lookup.answered(first, [peers[6] as Uint8Array]);
    lookup.answered(second, []);
    lookup.answered(second, [peers[7] as Uint8Array]);
    // Two of the three ended, so two may follow; one peer is left.
    expect(lookup.next()).toEqual([peers[3]]);
    expect(lookup.nearest()).toEqual([second]);
  });

  test('the requests are bounded, and it is done only after the last one ended', () => {
    const lookup = new Lookup(primitives, { ...start, peers });
    let last: Uint8Array[] = [];
    while (lookup.requests < 40) {
      for (const peer of last) lookup.failed(peer);
      last = lookup.next();
    }
    expect(lookup.done).toBe(false);
    expect(lookup.next()).toEqual([]);
    for (const peer of last) lookup.failed(peer);
    expect([lookup.done, lookup.requests, lookup.next()]).toEqual([true, 40, []]);
  });

  test('without peers it is done at once', () => {
    const lookup = new Lookup(primitives, { ...start, peers: [self] });
    expect([lookup.done, lookup.next(), lookup.nearest()]).toEqual([true, [], []]);
  });

  test('invented peers of one relay do not use up the requests', () => {
    const invented = inventedNear(40);
    const liar = peers[0] as Uint8Array;
    const lookup = new Lookup(primitives, { ...start, peers });
    let wasted = 0;
    while (!lookup.done) {
      for (const peer of lookup.next()) {
        if (peer === liar) lookup.answered(peer, invented);
        else if (invented.includes(peer)) {
          wasted += 1;
          lookup.failed(peer);
        } else lookup.answered(peer, []);
      }
    }
    expect(wasted).toBeLessThanOrEqual(5);
    expect(lookup.nearest()).toEqual(peers.slice(0, 20));
  });

  test('a relay that names invented peers does not discredit the peers begun with', () => {
    const liar = peers[0] as Uint8Array;
    const invented = inventedNear(3);
    const lookup = new Lookup(primitives, { ...start, peers });
    while (!lookup.done) {
      for (const peer of lookup.next()) {
        if (peer === liar) lookup.answered(peer, [...peers.slice(10, 27), ...invented]);
        else if (invented.includes(peer)) lookup.failed(peer);
        else lookup.answered(peer, []);
      }
    }
    expect(lookup.nearest()).toEqual(peers.slice(0, 20));
  });

  test('peers near the target that name each other only do not keep the others from being found', () => {
    const relays = (kind: string, count: number) =>
      byDistance(Array.from({ length: count }, (_, index) => peerOf(`${kind} ${index}`)));
    const liars = relays('liar', 100);
    const honest = relays('honest', 400);
    // The nearest of those that the lookup begins with lies.
    const known = [liars[0] as Uint8Array, ...honest.slice(200, 240)];
    const lookup = new Lookup(primitives, { ...start, peers: known });
    while (!lookup.done) {
      for (const peer of lookup.next()) {
        lookup.answered(peer, (liars.includes(peer) ? liars : honest).slice(0, 20));
      }
    }
    const nearest = byDistance([...liars, ...honest]).slice(0, 20);
    expect(lookup.nearest()).toEqual(nearest);
  });

  test('any order of answers and failures ends within the bounds', () => {
    const nat = fc.nat(59);
    const event = fc.tuple(fc.boolean(), fc.nat(), fc.array(nat, { maxLength: 30 }));
    fc.assert(
      fc.property(
        fc.array(nat),
        fc.array(event, { minLength: 60, maxLength: 60 }),
        (seeds, events) => {
          const named = (indexes: readonly number[]) =>
            indexes.map((at) => peers[at] as Uint8Array);
          const lookup = new Lookup(primitives, { ...start, peers: named(seeds) });
          const underWay: Uint8Array[] = [];
          const asked: string[] = [];
          for (const [answers, which, closer] of events) {
            const next = lookup.next();
            underWay.push(...next);
            asked.push(...next.map(hex));
            expect(underWay.length).toBeLessThanOrEqual(3);
            if (underWay.length === 0) break;
            const [peer] = underWay.splice(which % underWay.length, 1) as [Uint8Array];
            if (answers) lookup.answered(peer, named(closer));
            else lookup.failed(peer);
          }
          expect([lookup.done, underWay]).toEqual([true, []]);
          expect(new Set(asked).size).toBe(asked.length);
          expect(asked.length).toBe(lookup.requests);
          expect(lookup.requests).toBeLessThanOrEqual(40);
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** A network of relays, some of which are gone and some of which lie. */
class SimulatedNetwork {
  readonly peers: readonly Uint8Array[];
  readonly #tables = new Map<string, RoutingTable>();
  readonly #kinds = new Map<string, 'good' | 'gone' | 'lying'>();

  constructor(size: number) {
    this.peers = Array.from({ length: size }, (_, index) => peerOf(`node ${index}`));
    const entries = this.peers.map((peerId) => ({ relayId: hex(peerId), peerId }));
    for (const peer of this.peers) {
      const table = new RoutingTable(primitives, { self: peer, bucketSize: 20 });
      for (const entry of entries) table.insert(entry);
      this.#tables.set(hex(peer), table);
    }
  }

  /** Decides which shares of the relays are gone and lie. */
  divide(shares: { readonly gone: number; readonly lying: number }): void {
    for (const [index, peer] of this.peers.entries()) {
      const share = (index % 10) / 10;
      const isGone = share < shares.gone;
      const kind = isGone ? 'gone' : share < shares.gone + shares.lying ? 'lying' : 'good';
      this.#kinds.set(hex(peer), kind);
    }
  }

  isGood(peer: Uint8Array): boolean {
    return this.#kinds.get(hex(peer)) === 'good';
  }

  /** The peers that a relay's table has nearest to the target. */
  known(peer: Uint8Array, raw: Uint8Array): Uint8Array[] {
    return (this.#tables.get(hex(peer))?.closest(raw, 20) ?? []).map(({ peerId }) => peerId);
  }

  /** A relay's answer; a lying one names invented peers, or itself and its like. */
  ask(peer: Uint8Array, raw: Uint8Array): Uint8Array[] | undefined {
    const kind = this.#kinds.get(hex(peer)) ?? 'gone';
    if (kind === 'gone') return undefined;
    if (kind === 'good') return this.known(peer, raw);
    return (peer.at(-1) as number) % 2 === 0
      ? Array.from({ length: 20 }, (_, index) => peerOf(`${hex(peer)} invented ${index}`))
      : this.peers.filter((other) => this.#kinds.get(hex(other)) === 'lying').slice(0, 20);
  }
}

describe('lookups in a simulated network of 200 relays', () => {
  const network = new SimulatedNetwork(200);

  test.each([
    ['all well', 20, { gone: 0, lying: 0 }],
    ['20 % gone', 12, { gone: 0.2, lying: 0 }],
    ['20 % lying', 12, { gone: 0, lying: 0.2 }],
    ['20 % gone and 20 % lying', 6, { gone: 0.2, lying: 0.2 }],
  ])('07 §B7: %s: a record at the 20 nearest is found', (_name, least, shares) => {
    network.divide(shares);
    const requests: number[] = [];
    for (let index = 0; index < 30; index += 1) {
      const raw = primitives.sha256(utf8(`account ${index}`));
      const own = network.peers.filter((peer) => network.isGood(peer))[index] as Uint8Array;
      const others = network.peers.filter((peer) => peer !== own);
      const nearest = byDistance(others, raw).slice(0, 20).map(hex);
      const peers = network.known(own, raw);
      const lookup = new Lookup(primitives, { self: own, target: raw, peers, bounds });
      let replicas = 0;
      while (!lookup.done) {
        for (const peer of lookup.next()) {
          const closer = network.ask(peer, raw);
          if (network.isGood(peer) && nearest.includes(hex(peer))) replicas += 1;
          if (closer === undefined) lookup.failed(peer);
          else lookup.answered(peer, closer);
        }
      }
      requests.push(lookup.requests);
      // The record is at 20 relays, fewer of which are well.
      expect(replicas).toBeGreaterThanOrEqual(least);
    }
    expect(Math.max(...requests)).toBeLessThanOrEqual(40);
    expect(Math.min(...requests)).toBeGreaterThanOrEqual(20);
  });
});
