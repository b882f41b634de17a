import { beforeEach, expect, test } from 'vitest';
import {
  batchMilliseconds,
  batchSize,
  FairScheduler,
} from '../../src/notifications/fair-scheduler.ts';
import { ManualClock } from '../support/clock.ts';

/** Stands still unless a test moves it: then items take no time, and their number ends a turn. */
let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('a portion is done at once, and the rest in turns of the event loop', async () => {
  const turns = new FairScheduler(clock);
  const done: number[] = [];
  const all = turns.each(numbers(batchSize * 3), (item) => done.push(item));
  for (const portions of [1, 2, 3]) {
    expect(done).toHaveLength(batchSize * portions);
    await nextTurn();
  }
  await all;
  expect(done).toEqual(numbers(batchSize * 3));
});

test('decision 0019: a turn ends when its time is over, after its first item at the earliest', async () => {
  const turns = new FairScheduler(clock);
  const done: number[] = [];
  const all = turns.each([0.5, 0.5, 0.4, 0.1, 0.5, 2, 2, 0.9, 0.05], (share) => {
    done.push(share);
    clock.advance((share * batchMilliseconds) / 1_000);
  });
  const lengths = [];
  for (let turn = 0; turn < 6; turn += 1) {
    lengths.push(done.length);
    await nextTurn();
  }
  await all;
  expect(lengths).toEqual([2, 5, 6, 7, 9, 9]);
});

test('decision 0019: all loops share the time of a turn', async () => {
  const turns = new FairScheduler(clock);
  const done: string[] = [];
  const all = ['a', 'b'].map((name) =>
    turns.each(numbers(4), () => {
      done.push(name);
      clock.advance(batchMilliseconds / 2_000);
    }),
  );
  const lengths = [];
  for (let turn = 0; turn < 4; turn += 1) {
    lengths.push(done.length);
    await nextTurn();
  }
  await Promise.all(all);
  expect(lengths).toEqual([2, 4, 6, 8]);
  expect(done.join('')).toBe('aaaabbbb');
});

test('one turn processes one batch in total, and the longest waiting loop is next', async () => {
  const turns = new FairScheduler(clock);
  const done: string[] = [];
  const all = ['a', 'b', 'c'].map((name) =>
    turns.each(numbers(batchSize * 3), () => done.push(name)),
  );
  for (let turn = 1; turn <= 9; turn += 1) {
    expect(done).toHaveLength(batchSize * turn);
    await nextTurn();
  }
  await Promise.all(all);
  const order = numbers(9).map(
    (turn) => new Set(done.slice(turn * batchSize, (turn + 1) * batchSize)),
  );
  expect(order).toEqual([...'aabcabcbc'].map((name) => new Set([name])));
});

test('what one leaves of a turn is for the next', async () => {
  const turns = new FairScheduler(clock);
  const done: string[] = [];
  const all = [
    turns.each(numbers(batchSize), () => done.push('first')),
    ...numbers(batchSize).map((index) => turns.each([index], (item) => done.push(`small ${item}`))),
  ];
  expect(done).toHaveLength(batchSize);
  await nextTurn();
  expect(done).toHaveLength(batchSize * 2);
  await Promise.all(all);
  expect(done.slice(batchSize)).toEqual(numbers(batchSize).map((index) => `small ${index}`));
});

test('one that never ends does not keep the others from theirs', async () => {
  const turns = new FairScheduler(clock);
  let isOver = false;
  function* endless() {
    while (!isOver) yield 1;
  }
  const first = turns.each(endless(), () => {});
  const second: number[] = [];
  await turns.each(numbers(batchSize * 5), (item) => second.push(item));
  expect(second).toHaveLength(batchSize * 5);
  isOver = true;
  await first;
});

test('nothing to do takes no turn', async () => {
  const turns = new FairScheduler(clock);
  const long = turns.each(numbers(batchSize * 2), () => {});
  let isOver = false;
  const none = turns
    .each([], () => {})
    .then(() => {
      isOver = true;
    });
  await none;
  expect(isOver).toBe(true);
  await long;
});
