/** Writes and appends that share a transaction of SQLite. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openSqliteAlongside } from '../../src/storage/sqlite/storage.ts';
import type { AppendKind, SyncWriter, Writer } from '../../src/storage/types.ts';
import { appendThing, insertThing, sqliteThings } from '../support/sqlite-things.ts';

/** What happened, in order. */
let events: string[];
const sqlite = sqliteThings();
beforeEach(() => {
  events = [];
});
afterEach(() => void vi.restoreAllMocks());

const kindOf = (apply: (tx: SyncWriter, name: string) => number | undefined) =>
  ({ name: 'thing', aggregates: () => [], apply, batch: undefined }) satisfies AppendKind<
    string,
    number
  >;
const thing = kindOf((tx, name) => {
  events.push(name);
  return appendThing(tx, name);
});
const fail = (): never => {
  throw new Error('second thoughts');
};

describe('appends (decision 0007)', () => {
  test('share one commit with writes, run in the order of arrival, and are answered after it', async () => {
    sqlite.faults.beforeCommit = () => events.push('commit');
    const name = (each: string) => () => events.push(`${each} answered`);
    await Promise.all([
      sqlite.storage.append(thing, 'a').then(name('a')),
      sqlite.storage
        .write('x', (tx) => {
          events.push('b');
          return insertThing('b')(tx);
        })
        .then(name('b')),
      sqlite.storage.append(thing, 'c').then(name('c')),
    ]);
    expect(events.slice(0, 4)).toEqual(['a', 'b', 'c', 'commit']);
    expect(events).toHaveLength(7);
    expect(await sqlite.names()).toEqual(['a', 'b', 'c']);
  });

  test('many run in a turn, without a turn of their own each', async () => {
    vi.spyOn(performance, 'now').mockReturnValue(0);
    const many = Promise.all(
      Array.from({ length: 100 }, (_, n) => sqlite.storage.append(thing, `${n}`)),
    );
    const seen = new Set<number>();
    const look = () => {
      seen.add(events.length);
      turn = setImmediate(look);
    };
    let turn = setImmediate(look);
    await many;
    clearImmediate(turn);
    expect(seen).toEqual(new Set([100]));
  });

  test('of several milliseconds: other work runs after each', async () => {
    // Each statement takes 0.4 ms.
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    sqlite.faults.beforeStatement = () => {
      now += 0.4;
    };
    const seen = new Set<number>();
    const look = () => {
      seen.add(events.length);
      turn = setImmediate(look);
    };
    let turn = setImmediate(look);
    await Promise.all(
      ['1', '2', '3', '4', '5', '6'].map((name) => sqlite.storage.append(thing, name)),
    );
    clearImmediate(turn);
    expect(seen).toEqual(new Set([0, 3, 6]));
  });

  test('one that throws after a change leaves nothing, and is rejected alone', async () => {
    const broken = kindOf((tx, name) => {
      appendThing(tx, name);
      return fail();
    });
    const outcomes = await Promise.allSettled([
      sqlite.storage.append(thing, 'a'),
      sqlite.storage.append(broken, 'b'),
      sqlite.storage.append(thing, 'c'),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await sqlite.names()).toEqual(['a', 'c']);
  });

  test('one whose statement fails leaves nothing, whatever its kind makes of it', async () => {
    const careless = kindOf((tx, name) => {
      appendThing(tx, name);
      try {
        appendThing(tx, name);
      } catch {}
      return 1;
    });
    const written = sqlite.storage.append(careless, 'a');
    await expect(written).rejects.toThrow('a write continued after a failed statement');
    expect(await sqlite.names()).toEqual([]);
  });

  test('after a command wrote, listeners hear of it before any append', async () => {
    const changed = () => void events.push('changed');
    sqlite.storage.watch({ begins() {}, ended() {}, changed });
    await sqlite.storage.append(thing, 'before');
    {
      await using command = openSqliteAlongside(sqlite.path);
      await command.write('x', insertThing('command'));
    }
    await sqlite.storage.append(thing, 'after');
    await sqlite.storage.append(thing, 'again');
    expect(events).toEqual(['before', 'changed', 'after', 'again']);
  });
});

describe('a write that fails (decision 0007)', () => {
  /** How often each write ran. */
  let runs: Record<string, number>;
  const counted = (name: string, work: (tx: Writer) => Promise<unknown>) => {
    runs[name] = 0;
    return sqlite.storage.write('x', (tx) => {
      runs[name] = (runs[name] ?? 0) + 1;
      return work(tx);
    });
  };
  beforeEach(() => {
    runs = {};
  });

  test('before its first change costs the others nothing', async () => {
    const writes = [
      counted('a', insertThing('a')),
      counted('b', async (tx) => {
        await tx.get('SELECT name FROM things');
        return fail();
      }),
      counted('c', insertThing('c')),
    ];
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(runs).toEqual({ a: 1, b: 1, c: 1 });
    expect(await sqlite.names()).toEqual(['a', 'c']);
  });

  test('after a change has the writes before it done again, once however many fail', async () => {
    const failing = (name: string) => async (tx: Writer) => {
      await insertThing(name)(tx);
      return fail();
    };
    const writes = [
      counted('a', insertThing('a')),
      counted('b', failing('b')),
      counted('c', insertThing('c')),
      counted('d', failing('d')),
      counted('e', insertThing('e')),
    ];
    let commits = 0;
    sqlite.faults.beforeCommit = () => {
      commits += 1;
    };
    const outcomes = await Promise.allSettled(writes);
    const [done, failed] = ['fulfilled', 'rejected'];
    expect(outcomes.map(({ status }) => status)).toEqual([done, failed, done, failed, done]);
    expect(runs).toEqual({ a: 2, b: 1, c: 1, d: 1, e: 1 });
    expect(commits).toBe(1);
    expect(await sqlite.names()).toEqual(['a', 'c', 'e']);
  });

  test('when it runs again is rejected alone', async () => {
    // However slow the machine is, the four share a transaction.
    vi.spyOn(performance, 'now').mockReturnValue(0);
    let attempts = 0;
    const writes = [
      sqlite.storage.write('x', insertThing('a')),
      sqlite.storage.write('x', async (tx) => {
        await insertThing('b')(tx);
        attempts += 1;
        return attempts === 1 ? undefined : fail();
      }),
      sqlite.storage.write('x', async (tx) => {
        await insertThing('c')(tx);
        return fail();
      }),
      sqlite.storage.write('x', insertThing('d')),
    ];
    const outcomes = await Promise.allSettled(writes);
    const [done, failed] = ['fulfilled', 'rejected'];
    expect(outcomes.map(({ status }) => status)).toEqual([done, failed, failed, done]);
    expect(await sqlite.names()).toEqual(['a', 'd']);
  });
});
