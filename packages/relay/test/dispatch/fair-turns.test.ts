import { expect, test } from 'vitest';
import { FairTurns } from '../../src/dispatch/fair-turns.ts';

const turn = () => new Promise<void>((go) => setImmediate(go));

test('one piece of work has each turn of the event loop, and owners alternate', async () => {
  const turns = new FairTurns();
  const order: string[] = [];
  const work = (owner: string) => turns.take(owner).then(() => void order.push(owner));
  for (let count = 0; count < 4; count += 1) void work('ann');
  const [bob] = [work('bob'), work('eve')];
  await Promise.resolve();
  expect(order).toEqual(['ann']);
  await turn();
  expect(order.length).toBeLessThanOrEqual(2);
  await bob;
  expect(order).toEqual(['ann', 'ann', 'bob']);
  while (order.length < 6) await turn();
  expect(order.slice(3)).toEqual(['eve', 'ann', 'ann']);
});

test('without others, there is no wait', async () => {
  const turns = new FairTurns();
  for (let count = 0; count < 3; count += 1) {
    let isTaken = false;
    void turns.take('ann').then(() => {
      isTaken = true;
    });
    await Promise.resolve();
    expect(isTaken).toBe(true);
    await turn();
    await turn();
  }
});
