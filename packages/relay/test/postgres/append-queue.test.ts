/** When the queue of appends begins its batches; no server (decision record 0027). */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { nextTurn } from '../../src/event-loop.ts';
import { AppendQueue, type BatchWork } from '../../src/storage/postgres/append-queue.ts';
import { ConnectionLost, ConnectionsBusy } from '../../src/storage/postgres/errors.ts';
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

type Run = (work: BatchWork) => Promise<void>;
const atOnce: Run = (work) => work.write(server);

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
  const queue = new AppendQueue({ changed: () => {}, atOnce, inTurn: undefined });
  held.push(1);
  expect(await Promise.all([add(queue, 'free'), add(queue, 'blocked')])).toEqual([
    ...['free', 'blocked'],
  ]);
  expect(batches).toEqual([['free'], ['blocked']]);
  expect(vi.getTimerCount()).toBe(0);
});

test('0027: after a batch of which every input waits for a lock there is a pause', async () => {
  const queue = new AppendQueue({ changed: () => {}, atOnce, inTurn: undefined });
  held.push(1);
  const blocked = add(queue, 'blocked');
  await pauses();
  expect(batches).toEqual([]);
  await vi.advanceTimersByTimeAsync(5);
  expect(await blocked).toBe('blocked');
});

test('0027: an append that arrives ends the pause', async () => {
  const queue = new AppendQueue({ changed: () => {}, atOnce, inTurn: undefined });
  held.push(1);
  const blocked = add(queue, 'blocked');
  await pauses();
  expect(await add(queue, 'free')).toBe('free');
  expect(await blocked).toBe('blocked');
  expect(batches).toEqual([['blocked', 'free']]);
});

describe('0027: turns among the batches of several processes', () => {
  const several = (queue: AppendQueue, count: number, prefix = 'n') =>
    Promise.all(Array.from({ length: count }, (_, n) => add(queue, `${prefix}${n}`)));

  test.each([
    [15, ['at once', 'at once']],
    [16, ['at once', 'in turn']],
  ])('after a batch of %i inputs the next one begins %o', async (count, expected) => {
    const ways: string[] = [];
    const way =
      (name: string): Run =>
      async (work) => {
        ways.push(name);
        await work.write(server);
      };
    const queue = new AppendQueue({
      ...{ atOnce: way('at once'), inTurn: way('in turn') },
      changed: () => {},
    });
    await several(queue, count);
    await add(queue, 'next');
    expect(ways).toEqual(expected);
    await add(queue, 'alone');
    expect(ways.at(-1)).toBe('at once');
  });

  test('what arrives while a batch waits for its turn joins it', async () => {
    const turn = Promise.withResolvers<void>();
    const waits = Promise.withResolvers<void>();
    const inTurn: Run = async (work) => {
      waits.resolve();
      await turn.promise;
      await work.write(server);
    };
    const queue = new AppendQueue({ changed: () => {}, atOnce, inTurn });
    await several(queue, 16);
    const first = add(queue, 'first');
    await waits.promise;
    const second = add(queue, 'second');
    turn.resolve();
    expect(await Promise.all([first, second])).toEqual(['first', 'second']);
    expect(batches.map((batch) => batch.length)).toEqual([16, 2]);
  });

  test('if the turn does not come, the batch begins at once, and later ones ask again', async () => {
    let missed = 0;
    const inTurn: Run = async () => {
      missed += 1;
      throw new ConnectionsBusy('no turn');
    };
    const queue = new AppendQueue({ changed: () => {}, atOnce, inTurn });
    await several(queue, 16);
    expect(await several(queue, 16, 'm')).toHaveLength(16);
    expect(missed).toBe(1);
    await several(queue, 1, 'l');
    expect(missed).toBe(2);
    expect(batches.map((batch) => batch.length)).toEqual([16, 16, 1]);
  });

  test('if the connection breaks while a batch waits for its turn, its inputs are rejected', async () => {
    const inTurn: Run = async () => {
      throw new ConnectionLost('gone');
    };
    const queue = new AppendQueue({ changed: () => {}, atOnce, inTurn });
    await several(queue, 16);
    await expect(add(queue, 'lost')).rejects.toThrow('gone');
    expect(await add(queue, 'again')).toBe('again');
  });
});
