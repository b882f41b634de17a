/** Decision 0025: while reads come, they see what is on disk, and wait for no flush. */
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSqliteAlongside } from '../../src/storage/sqlite/storage.ts';
import type { AppendKind } from '../../src/storage/types.ts';
import { seed } from '../support/chance.ts';
import { silentObserver } from '../support/silent-observer.ts';
import { appendThing, insertThing, sqliteThings } from '../support/sqlite-things.ts';

const sqlite = sqliteThings({ observer: silentObserver });
const namesSql = 'SELECT name FROM things ORDER BY name';

/** Flushes under way, of which each waits to be ended. */
let flushes: (() => void)[];
let commits: number;

beforeEach(() => {
  flushes = [];
  commits = 0;
  sqlite.faults.beforeCommit = () => {
    commits += 1;
  };
});

// Before the storage is closed.
afterEach(() => {
  delete sqlite.faults.flush;
  for (const end of flushes) end();
});

const turns = async (count = 20): Promise<void> => {
  if (count === 0) return;
  await new Promise((resolve) => setImmediate(resolve));
  await turns(count - 1);
};
const holdFlushes = () => {
  sqlite.faults.flush = (flush) =>
    new Promise((resolve, reject) => {
      flushes.push(() => void flush().then(resolve, reject));
    });
};
/** Ends the flush under way, and resolves when those that waited for it have been answered. */
const endFlush = async () => {
  flushes.shift()?.();
  await turns(60);
};
const endAll = async (work: Promise<unknown>) => {
  delete sqlite.faults.flush;
  for (const end of flushes.splice(0)) end();
  await work;
};
const write = (name: string) => sqlite.storage.write('x', insertThing(name));

/** Writes `first` and reads it before its flush has ended: then snapshots are taken. */
async function readWhileUnflushed(): Promise<void> {
  holdFlushes();
  const first = write('first');
  await turns();
  const read = sqlite.names();
  await endFlush();
  await first;
  expect(await read).toEqual(['first']);
}

const thing: AppendKind<string, number> = {
  name: 'thing',
  aggregates: () => [],
  apply: appendThing,
  batch: undefined,
};

/** Has another commit made during a flush: more than a batch takes. Returns the writes. */
async function commitMore(): Promise<{ readonly written: Promise<unknown> }> {
  const before = commits;
  const many = Array.from({ length: 300 }, (_, n) => sqlite.storage.append(thing, `n${n}`));
  while (commits === before) await turns(1);
  return { written: Promise.all(many) };
}

describe('a read while a commit waits for its flush', () => {
  test('sees what was answered, and no more, at once', async () => {
    await readWhileUnflushed();
    const second = write('second');
    await turns();
    expect(flushes).toHaveLength(1);
    expect(await sqlite.names()).toEqual(['first']);
    const { written } = await commitMore();
    expect(await sqlite.names()).toEqual(['first']);
    await endFlush();
    await second;
    // The next flush is under way.
    expect(flushes).toHaveLength(1);
    expect(await sqlite.names()).toEqual(['first', 'second']);
    await endAll(written);
    expect(await sqlite.names()).toHaveLength(302);
  });

  test('that lasts goes on with what it saw', async () => {
    await readWhileUnflushed();
    const second = write('second');
    await turns();
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const read = sqlite.storage.read(async (tx) => {
      const before = await tx.all(namesSql);
      await goOn;
      return [before, await tx.all(namesSql)];
    });
    await endFlush();
    await endAll(second);
    await Promise.all(Array.from({ length: 20 }, (_, n) => write(`later ${n}`)));
    resolve();
    expect(await read).toEqual([[{ name: 'first' }], [{ name: 'first' }]]);
  });

  test('whose statement or work fails ends alone', async () => {
    await readWhileUnflushed();
    const second = write('second');
    await turns();
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const other = sqlite.storage.read(async (tx) => {
      await tx.get('SELECT 1 AS one');
      await goOn;
      return await tx.all(namesSql);
    });
    await expect(sqlite.storage.read((tx) => tx.all('SELECT no FROM things'))).rejects.toThrow();
    const refused = new Error('it is there');
    await expect(sqlite.storage.read(() => Promise.reject(refused))).rejects.toBe(refused);
    resolve();
    expect(await other).toEqual([{ name: 'first' }]);
    await endAll(second);
  });

  test('waits for the flush if another process has written meanwhile, and sees that', async () => {
    await readWhileUnflushed();
    const second = write('second');
    await turns();
    {
      await using alongside = openSqliteAlongside(sqlite.path);
      await alongside.write('x', insertThing('by a command'));
    }
    // The next batch notices it.
    const { written } = await commitMore();
    let hasRead = false;
    const read = sqlite.names().finally(() => {
      hasRead = true;
    });
    await turns();
    expect(hasRead).toBe(false);
    await endAll(Promise.all([second, written]));
    expect(await read).toEqual(expect.arrayContaining(['by a command', 'first', 'second']));
  });
});

describe('a snapshot is gone', () => {
  /** Whether no reader of this process keeps the log from starting anew. */
  const isLogFree = () => {
    using connection = new DatabaseSync(sqlite.database);
    const { busy } = connection.prepare('PRAGMA wal_checkpoint(RESTART)').get() as { busy: number };
    return busy === 0;
  };

  test('when all is on disk', async () => {
    await readWhileUnflushed();
    const second = write('second');
    await turns();
    expect(isLogFree()).toBe(false);
    await endFlush();
    await second;
    expect(isLogFree()).toBe(true);
  });

  test('after a commit that failed', async () => {
    await readWhileUnflushed();
    const { beforeCommit } = sqlite.faults;
    sqlite.faults.reach = (point) => {
      if (point === 'commit') throw new Error('the disk fails');
    };
    await expect(write('second')).rejects.toThrow();
    delete sqlite.faults.reach;
    sqlite.faults.beforeCommit = beforeCommit as () => void;
    expect(isLogFree()).toBe(true);
  });

  test('sixteen commits after the last read that could use one', async () => {
    await readWhileUnflushed();
    delete sqlite.faults.flush;
    for (let n = 0; n < 16; n += 1) await write(`n${n}`);
    holdFlushes();
    const last = write('last');
    await turns();
    expect(isLogFree()).toBe(true);
    await endAll(last);
  });
});

test('every read sees all that was answered before it began, and nothing that is not on disk', async () => {
  const step = fc.constantFrom(
    'write',
    'many',
    'many',
    'read',
    'long read',
    'flush',
    'turns',
    'turns',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      await sqlite.storage.write('x', (tx) => tx.run('DELETE FROM things'));
      holdFlushes();
      const answered = new Set<string>();
      const open: Promise<unknown>[] = [];
      let count = 0;
      const add = () => {
        count += 1;
        const name = `n${count}`;
        open.push(sqlite.storage.append(thing, name).then(() => answered.add(name)));
      };
      const read = async (isLong: boolean) => {
        const before = new Set(answered);
        const rows = await sqlite.storage.read(async (tx) => {
          await tx.all(namesSql);
          if (isLong) await turns(5);
          return await tx.all<{ name: string }>(namesSql);
        });
        const seen = new Set(rows.map(({ name }) => name));
        expect([...before].filter((name) => !seen.has(name))).toEqual([]);
        // What is on disk is answered in this turn.
        await turns(1);
        expect([...seen].filter((name) => !answered.has(name))).toEqual([]);
      };
      for (const made of steps) {
        if (made === 'write') add();
        else if (made === 'many') for (let n = 0; n < 256; n += 1) add();
        else if (made === 'read') open.push(read(false));
        else if (made === 'long read') open.push(read(true));
        else if (made === 'flush') flushes.shift()?.();
        else await turns(30);
      }
      await endAll(Promise.all(open));
    }),
    { seed, numRuns: 15 },
  );
});
