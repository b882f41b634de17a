import { expect, test } from 'vitest';
import { FairTurns } from '../../src/dispatch/fair-turns.ts';

/** Calls of the owners in the order in which they ask; and how many began until each turn ended. */
async function begun(owners: readonly string[], isPage: boolean) {
  const turns = new FairTurns();
  const order: string[] = [];
  const done = owners.map(async (owner) => {
    await turns.take(owner, isPage);
    order.push(owner);
  });
  const counts: number[] = [];
  while (order.length < owners.length) {
    await Promise.resolve();
    await new Promise<void>((go) => process.nextTick(go));
    if (order.length !== counts.at(-1)) counts.push(order.length);
    await new Promise<void>((go) => setImmediate(go));
  }
  await Promise.all(done);
  return { order, counts };
}

test('calls that make a page have a turn of the event loop each, in rotation of the owners', async () => {
  const { order, counts } = await begun(['ann', 'ann', 'ann', 'ann', 'bob', 'eve'], true);
  expect(counts[0]).toBe(1);
  expect(order).toEqual(['ann', 'ann', 'bob', 'eve', 'ann', 'ann']);
});

test('64 other calls begin at once, the next ones in rotation', async () => {
  const { order, counts } = await begun([...Array(200).fill('ann'), 'bob'], false);
  expect(counts[0]).toBe(64);
  expect(order.indexOf('bob')).toBe(65);
});
