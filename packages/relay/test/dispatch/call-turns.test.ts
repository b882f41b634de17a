import { expect, test } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';

/** Calls of so many milliseconds each, for the owners in the order in which they ask. */
function working(milliseconds: number, owners: readonly string[], isPage = false) {
  let now = 0;
  const turns = new CallTurns({ monotonic: () => now });
  const order: string[] = [];
  const done = owners.map(async (owner) => {
    await turns.take(owner, isPage);
    await Promise.resolve();
    now += milliseconds;
    order.push(owner);
  });
  return { order, done: Promise.all(done) };
}

const turn = () => new Promise<void>((go) => setImmediate(go));

test('large calls have a turn of the event loop each, in rotation of the owners', async () => {
  const { order, done } = working(5, ['ann', 'ann', 'ann', 'ann', 'bob', 'eve']);
  await new Promise<void>((go) => process.nextTick(go));
  const counts = [order.length];
  while (order.length < 6) {
    await turn();
    counts.push(order.length);
  }
  await done;
  expect(counts).toEqual([1, 2, 3, 4, 5, 6]);
  expect(order).toEqual(['ann', 'ann', 'bob', 'eve', 'ann', 'ann']);
});

test('calls of 0.25 ms share a turn too, until it has had 1 ms', async () => {
  const { order, done } = working(0.25, Array(8).fill('ann'));
  await turn();
  expect(order.length).toBe(8);
  await done;
});

/** How many of so many short calls had begun when each turn of the event loop ended. */
async function counts(calls: number, isPage: boolean): Promise<number[]> {
  const { order } = working(0, Array(calls).fill('ann'), isPage);
  const begun: number[] = [];
  while (order.length < calls) {
    await turn();
    begun.push(order.length);
  }
  return begun;
}

test('64 short calls share a turn', async () => {
  expect(await counts(192, false)).toEqual([128, 192]);
});

test('eight calls that make a page share a turn', async () => {
  expect(await counts(24, true)).toEqual([16, 24]);
});

test('02 §18: a call that proves to make a page once it has begun counts as eight', async () => {
  const turns = new CallTurns({ monotonic: () => 0 });
  const begun: number[] = [];
  let count = 0;
  for (let call = 0; call < 24; call += 1) {
    void turns.take('ann').then(() => {
      turns.countPage();
      count += 1;
    });
  }
  while (count < 24) {
    await turn();
    begun.push(count);
  }
  expect(begun).toEqual([16, 24]);
});

test('02 §18: an owner begins up to eight short calls in a row; one that makes a page is its turn', async () => {
  const order = async (isPage: boolean) => {
    const owners = [...Array(20).fill('ann'), ...Array(20).fill('bob')];
    const made = working(0.01, owners, isPage);
    await made.done;
    return made.order.join(' ').replaceAll('ann', 'a').replaceAll('bob', 'b').replaceAll(' ', '');
  };
  expect(await order(false)).toBe(
    `aab${'a'.repeat(8)}${'b'.repeat(8)}${'a'.repeat(8)}${'b'.repeat(8)}aabbb`,
  );
  expect(await order(true)).toBe(`aab${'ab'.repeat(18)}b`);
});

test('02 §18: however many owners have many calls, the first call of another is among the next', async () => {
  const turns = new CallTurns({ monotonic: () => 0 });
  const order: string[] = [];
  const call = async (owner: string) => {
    await turns.take(owner);
    order.push(owner);
  };
  for (let hot = 0; hot < 40; hot += 1) for (let n = 0; n < 50; n += 1) void call(`hot ${hot}`);
  while (order.length < 200) await turn();
  const before = order.length;
  await call('new');
  expect(order.indexOf('new') - before).toBeLessThanOrEqual(8);
});

test('02 §18: an owner that reads a page now and then waits for no round of calls that take a millisecond', async () => {
  let now = 0;
  let isOver = false;
  const turns = new CallTurns({ monotonic: () => now });
  const call = async (owner: string) => {
    while (!isOver) {
      await turns.take(owner);
      now += 0.7;
      // Its answer, and the next request.
      await turn();
    }
  };
  for (let hot = 0; hot < 8; hot += 1) for (let n = 0; n < 16; n += 1) void call(`hot ${hot}`);
  while (now < 100) await turn();
  const waits: number[] = [];
  for (let page = 0; page < 50; page += 1) {
    const until = now + 5;
    while (now < until) await turn();
    const asked = now;
    await turns.take('ann', true);
    waits.push(now - asked);
    turns.pageMade('ann', 2);
  }
  isOver = true;
  // Eight of the others in a row would take 5.6 ms, and a round of theirs 45.
  expect(Math.max(...waits)).toBeLessThanOrEqual(4);
});

test('02 §18: an owner that reads a small page now and then waits for no round of the others', async () => {
  /** Most calls of others that begin between a page's arrival and its turn. */
  const waited = async (calls: number) => {
    let now = 0;
    const turns = new CallTurns({ monotonic: () => now });
    let begun = 0;
    const call = async (owner: string) => {
      await turns.take(owner);
      // A turn of the event loop has time for four.
      now += 0.25;
      begun += 1;
    };
    for (let hot = 0; hot < 8; hot += 1) for (let n = 0; n < 60; n += 1) void call(`hot ${hot}`);
    while (begun < 72) await turn();
    const waits: number[] = [];
    for (let page = 0; page < 4; page += 1) {
      const before = begun;
      await turns.take('ann', true);
      waits.push(begun - before);
      turns.pageMade('ann', calls);
      await turn();
    }
    return Math.max(...waits);
  };
  expect(await waited(1)).toBeLessThanOrEqual(8);
  expect(await waited(8)).toBeGreaterThanOrEqual(32);
  // However large, it counts as eight.
  expect(await waited(500)).toBeGreaterThanOrEqual(32);
});
