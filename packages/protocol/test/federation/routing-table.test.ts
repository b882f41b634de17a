import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dhtDistance, dhtPosition, peerIdOfKey, RoutingTable } from '../../src/federation/index.ts';
import { compareDistance, hex } from '../../src/index.ts';
import { nodePrimitives as primitives } from '../../src/node/primitives.ts';

/** The Peer ID with this number. */
function peerOf(seed: number): Uint8Array {
  const data = new Uint8Array(32);
  new DataView(data.buffer).setUint32(0, seed);
  return peerIdOfKey(primitives, { type: 'ed25519', data });
}

const self = peerOf(0);
const entryOf = (seed: number, relay = seed) => ({
  relayId: `relay ${relay}`,
  peerId: peerOf(seed),
});
const tableOf = (bucketSize = 20) => new RoutingTable(primitives, { self, bucketSize });

/** Leading bits that the positions of two raw inputs share, counted plainly. */
function bucketOf(raw: Uint8Array): number {
  const bits = [...dhtDistance(primitives, self, raw)]
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('');
  return bits.indexOf('1');
}

/** Peers of one bucket, by number. */
const inBucket = (bucket: number, count: number) =>
  Array.from({ length: 400 }, (_, index) => index + 1)
    .filter((seed) => bucketOf(peerOf(seed)) === bucket)
    .slice(0, count);

describe('07 §B5: one Peer ID per relay ID, one relay ID per Peer ID', () => {
  test('the same pair is known, either half with another partner is a conflict', () => {
    const table = tableOf();
    expect(table.insert(entryOf(1))).toBe('added');
    expect(table.insert(entryOf(1))).toBe('known');
    expect(table.insert(entryOf(2, 1))).toBe('conflict');
    expect(table.insert(entryOf(1, 2))).toBe('conflict');
    expect(table.insert(entryOf(2))).toBe('added');
    expect(table.insert(entryOf(2, 1))).toBe('conflict');
    expect(table.size).toBe(2);
    expect(table.ofRelay('relay 1')).toEqual(entryOf(1));
  });

  test('after the old peer was removed, its relay has a new one', () => {
    const table = tableOf();
    table.insert(entryOf(1));
    expect(table.remove('relay 1')).toBe(true);
    expect(table.remove('relay 1')).toBe(false);
    expect(table.ofRelay('relay 1')).toBeUndefined();
    expect(table.insert(entryOf(2, 1))).toBe('added');
    expect(table.insert(entryOf(1, 3))).toBe('added');
    expect(table.size).toBe(2);
  });

  test('the own Peer ID is not inserted', () => {
    const table = tableOf();
    expect(table.insert(entryOf(0))).toBe('self');
    expect(table.size).toBe(0);
  });
});

describe('07 §B8: buckets', () => {
  test('a full bucket takes no peer until one of it is removed; other buckets do', () => {
    const [a, b, c] = inBucket(0, 3) as [number, number, number];
    const [other] = inBucket(1, 1) as [number];
    const table = tableOf(2);
    expect([a, b, c, other].map((seed) => table.insert(entryOf(seed)))).toEqual([
      'added',
      'added',
      'full',
      'added',
    ]);
    expect(table.ofRelay(`relay ${c}`)).toBeUndefined();
    // The first is seen again, so the second is now the one seen least recently.
    expect(table.leastRecent(peerOf(c))).toEqual(entryOf(a));
    expect(table.insert(entryOf(a))).toBe('known');
    expect(table.leastRecent(peerOf(c))).toEqual(entryOf(b));
    table.remove(`relay ${b}`);
    expect(table.insert(entryOf(c))).toBe('added');
    expect(table.insert(entryOf(b))).toBe('full');
    expect(tableOf().leastRecent(peerOf(1))).toBeUndefined();
  });

  test('an insertion of a known pair replaces the entry', () => {
    const table = new RoutingTable<ReturnType<typeof entryOf> & { port: number }>(primitives, {
      self,
      bucketSize: 20,
    });
    table.insert({ ...entryOf(1), port: 1 });
    table.insert({ ...entryOf(1), port: 2 });
    expect(table.closest(self, 5).map(({ port }) => port)).toEqual([2]);
  });

  test('closest gives the peers in order of distance, like sorting all of them', () => {
    const seed = fc.integer({ min: 1, max: 300 });
    fc.assert(
      fc.property(fc.uniqueArray(seed), fc.uint8Array(), fc.nat(30), (seeds, raw, count) => {
        const table = tableOf(300);
        for (const seed of seeds) table.insert(entryOf(seed));
        const sorted = seeds
          .map(peerOf)
          .map((peerId) => [dhtDistance(primitives, raw, peerId), hex(peerId)] as const)
          .sort(([a], [b]) => compareDistance(a, b))
          .map(([, id]) => id);
        const found = table.closest(raw, count).map(({ peerId }) => hex(peerId));
        expect(found).toEqual(sorted.slice(0, count));
      }),
    );
  });

  test('any sequence of insertions and removals leaves the table one-to-one and bounded', () => {
    const step = fc.tuple(fc.constantFrom('insert', 'remove'), fc.nat(12), fc.nat(12));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const table = tableOf(2);
        /** Peer by relay, as the results say. */
        const model = new Map<number, number>();
        for (const [kind, seed, relay] of steps) {
          if (kind === 'remove') {
            expect(table.remove(`relay ${relay}`)).toBe(model.delete(relay));
            continue;
          }
          const result = table.insert(entryOf(seed, relay));
          const isTaken = model.has(relay) || [...model.values()].includes(seed);
          const isFull =
            [...model.values()].filter((each) => bucketOf(peerOf(each)) === bucketOf(peerOf(seed)))
              .length === 2;
          if (seed === 0) expect(result).toBe('self');
          else if (model.get(relay) === seed) expect(result).toBe('known');
          else if (isTaken) expect(result).toBe('conflict');
          else expect(result).toBe(isFull ? 'full' : 'added');
          if (result === 'added') model.set(relay, seed);
        }
        const entries = table
          .closest(self, 100)
          .map(({ relayId, peerId }) => [relayId, hex(peerId)]);
        const expected = [...model].map(([relay, seed]) => [`relay ${relay}`, hex(peerOf(seed))]);
        expect(entries.sort()).toEqual(expected.sort());
        expect(table.size).toBe(model.size);
      }),
      { numRuns: 300 },
    );
  });

  test('refresh inputs land in the bucket they are for', () => {
    let drawn = 0;
    const random = (length: number) => {
      drawn += 1;
      return dhtPosition(primitives, Uint8Array.of(drawn >> 8, drawn)).subarray(0, length);
    };
    const inputs = tableOf().refreshInputs(random, 6);
    expect([...inputs.keys()].sort()).toEqual([0, 1, 2, 3, 4, 5]);
    for (const [bucket, raw] of inputs) expect(bucketOf(raw)).toBe(bucket);
    expect(tableOf().refreshInputs(random, 0).size).toBe(0);
  });

  test('draws end, also with a source that always gives the same', () => {
    let drawn = 0;
    const random = () => {
      drawn += 1;
      return new Uint8Array(32);
    };
    expect(tableOf().refreshInputs(random, 256).size).toBe(1);
    expect(drawn).toBe(4 * 2 ** 13);
  });
});
