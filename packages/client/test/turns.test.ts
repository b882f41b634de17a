import { Network } from '@posthouse/protocol';
import { noblePrimitives } from '@posthouse/protocol/crypto';
import { webPrimitives } from '@posthouse/protocol/web';
import { expect, test } from 'vitest';
import { computeInTurns } from '../src/sync/in-turns.ts';

const context = `neo:860833102:0x${'01'.repeat(20)}`;

test.each([
  ['here', noblePrimitives, 2],
  ['by the platform', webPrimitives, 8],
])(
  'records computed %s leave turns of the event loop to others',
  async (_where, primitives, most) => {
    const network = new Network({ context, primitives });
    let turns = 0;
    let isOver = false;
    const next = () => {
      turns += 1;
      if (!isOver) setImmediate(next);
    };
    setImmediate(next);
    const items = Array.from({ length: 40 }, (_, index) => index);
    const seen = new Map<number, Set<number>>();
    const results = await computeInTurns(network, items, (_each, item) => {
      seen.set(turns, (seen.get(turns) ?? new Set()).add(item));
      return item * 2;
    });
    isOver = true;
    expect(results).toEqual(items.map((item) => item * 2));
    expect(Math.max(...[...seen.values()].map(({ size }) => size))).toBeLessThanOrEqual(most);
  },
);

test('the first record that fails decides, in the order of the records', async () => {
  const network = new Network({ context, primitives: webPrimitives });
  const work = computeInTurns(network, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], (_each, item) => {
    if (item >= 3) throw new Error(`record ${item}`);
  });
  await expect(work).rejects.toThrow('record 3');
});
