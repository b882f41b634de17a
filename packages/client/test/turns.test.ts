import { Network } from '@posthouse/protocol';
import { noblePrimitives } from '@posthouse/protocol/crypto';
import { webPrimitives } from '@posthouse/protocol/web';
import { afterEach, expect, test, vi } from 'vitest';
import { shortTurns } from '../../protocol/src/web/short-turns.ts';
import { computeInTurns } from '../src/sync/in-turns.ts';

const context = `neo:860833102:0x${'01'.repeat(20)}`;

afterEach(() => vi.restoreAllMocks());

/** A clock that only computing moves. */
function computingClock() {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  return (milliseconds: number) => {
    now += milliseconds;
  };
}

/** Counts turns of the event loop until it is disposed. */
function turnCounter() {
  let [turns, isOver] = [0, false];
  const next = () => {
    turns += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  return {
    get now() {
      return turns;
    },
    [Symbol.dispose]: () => {
      isOver = true;
    },
  };
}

test.each([
  ['here', noblePrimitives, 20, 2],
  ['here', noblePrimitives, 4, 4],
  ['here', noblePrimitives, 0, 40],
  ['by the platform', webPrimitives, 4, 8],
  ['by the platform', webPrimitives, 1, 16],
])(
  'records computed %s leave turns to others after 10 ms',
  async (_where, primitives, cost, most) => {
    const network = new Network({ context, primitives });
    const pass = computingClock();
    using turns = turnCounter();
    const items = Array.from({ length: 40 }, (_, index) => index);
    const seen = new Map<number, Set<number>>();
    const results = await computeInTurns(network, items, (_each, item) => {
      const now = seen.get(turns.now) ?? new Set();
      // The platform's run is made twice.
      if (!now.has(item)) pass(cost);
      seen.set(turns.now, now.add(item));
      return item * 2;
    });
    expect(results).toEqual(items.map((item) => item * 2));
    expect(Math.max(...[...seen.values()].map(({ size }) => size))).toBe(most);
  },
);

test.each([
  [20, 1],
  [4, 3],
  [0, 40],
])('what Web Crypto does not compute leaves turns to others after 10 ms', async (cost, most) => {
  const pass = computingClock();
  using turns = turnCounter();
  const compute = shortTurns();
  const seen: number[] = [];
  const results = Array.from({ length: 40 }, (_, index) =>
    compute(() => {
      pass(cost);
      seen.push(turns.now);
      if (index === 7) throw new Error('of one');
      return index;
    }),
  );
  const settled = await Promise.allSettled(results);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(39);
  expect(settled[7]).toMatchObject({ status: 'rejected' });
  const counts = Map.groupBy(seen, (turn) => turn).values();
  expect(Math.max(...[...counts].map(({ length }) => length))).toBe(most);
});

test('the first record that fails decides, in the order of the records', async () => {
  const network = new Network({ context, primitives: webPrimitives });
  const work = computeInTurns(network, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], (_each, item) => {
    if (item >= 3) throw new Error(`record ${item}`);
  });
  await expect(work).rejects.toThrow('record 3');
});
