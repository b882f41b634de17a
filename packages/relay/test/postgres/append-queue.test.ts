/** When the queue of appends begins its batches; no server (decision record 0027). */
import { beforeEach, expect, test, vi } from 'vitest';
import { nextTurn } from '../../src/event-loop.ts';
import { AppendQueue } from '../../src/storage/postgres/append-queue.ts';
import type { AppendKind, BatchWriter, Row } from '../../src/storage/types.ts';

/** Numbers of locks in the first statement of each batch that are not free. */
const held: number[] = [];
/** The inputs that each batch wrote. */
const batches: string[][] = [];

const names: AppendKind<string, string> = {
  name: 'names',
  aggregates: (name) => [name],
  apply: () => undefined,
  batch: {
    bytes: () => 1,
    async write(_tx, inputs) {
      batches.push([...inputs]);
      return inputs;
    },
  },
};

/** A server on which the last `held` of a batch's locks are another write's. */
const server: BatchWriter = {
  async all<T extends Row>(_sql: string, numbers: readonly unknown[] | unknown) {
    const count = (numbers as readonly unknown[]).length;
    const free = count - (held.shift() ?? 0);
    return Array.from({ length: count }, (_, n) => ({ taken: n < free ? 1 : 0 })) as unknown as T[];
  },
  run: async () => 0,
};

beforeEach(() => {
  held.length = 0;
  batches.length = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  return () => vi.useRealTimers();
});

const add = (queue: AppendQueue, name: string) => queue.add(names, name, Number.POSITIVE_INFINITY);

/** Resolves when the queue pauses; `vi.waitFor` would let time pass. */
async function pauses(): Promise<void> {
  while (vi.getTimerCount() === 0) await nextTurn();
}

test('0027: an input that waits for a lock is in the batch right after one that wrote', async () => {
  const queue = new AppendQueue((_, work) => work(server));
  held.push(1);
  expect(await Promise.all([add(queue, 'free'), add(queue, 'blocked')])).toEqual([
    ...['free', 'blocked'],
  ]);
  expect(batches).toEqual([['free'], ['blocked']]);
  expect(vi.getTimerCount()).toBe(0);
});

test('0027: after a batch of which every input waits for a lock there is a pause', async () => {
  const queue = new AppendQueue((_, work) => work(server));
  held.push(1);
  const blocked = add(queue, 'blocked');
  await pauses();
  expect(batches).toEqual([]);
  await vi.advanceTimersByTimeAsync(5);
  expect(await blocked).toBe('blocked');
});

test('0027: an append that arrives ends the pause', async () => {
  const queue = new AppendQueue((_, work) => work(server));
  held.push(1);
  const blocked = add(queue, 'blocked');
  await pauses();
  expect(await add(queue, 'free')).toBe('free');
  expect(await blocked).toBe('blocked');
  expect(batches).toEqual([['blocked', 'free']]);
});
