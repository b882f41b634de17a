/** Decision 0025: what depends on a commit leaves the relay after a flush that began after it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSqlite, openSqliteAlongside } from '../../src/storage/sqlite/storage.ts';
import type { AppendKind, Writer } from '../../src/storage/types.ts';
import { temporaryFolder } from '../support/folder.ts';
import { silentObserver } from '../support/silent-observer.ts';
import { appendThing, insertThing, sqliteThings, thingNames } from '../support/sqlite-things.ts';

/** What happened, in order. */
let events: string[];
/** Ends the flush that is under way. */
let endFlush: ((error?: Error) => void) | undefined;

beforeEach(() => {
  events = [];
});
const unflushed = (error: unknown) => void events.push(`ends: ${(error as Error).message}`);
const sqlite = sqliteThings({ observer: { ...silentObserver, unflushed } });
// Before the storage is closed.
afterEach(() => {
  delete sqlite.faults.flush;
  endFlush?.();
});

const thing: AppendKind<string, number> = {
  name: 'thing',
  aggregates: () => [],
  apply: appendThing,
  batch: undefined,
};
const named = (name: string, promise: Promise<unknown>) =>
  promise.then(
    () => void events.push(name),
    () => void events.push(`${name} failed`),
  );
const write = (name: string) => named(name, sqlite.storage.write('x', insertThing(name)));
const append = (name: string) => named(name, sqlite.storage.append(thing, name));
const turns = async (count = 20): Promise<void> => {
  if (count === 0) return;
  await new Promise((resolve) => setImmediate(resolve));
  await turns(count - 1);
};
/** Holds every flush from now on. */
const holdFlushes = () => {
  sqlite.faults.flush = (flush) =>
    new Promise((resolve, reject) => {
      events.push('flush');
      endFlush = (error) => (error === undefined ? flush().then(resolve, reject) : reject(error));
    });
};

describe('a commit', () => {
  test('is answered when its flush has ended', async () => {
    holdFlushes();
    const written = [write('one'), append('two')];
    await turns();
    expect(events).toEqual(['flush']);
    endFlush?.();
    await Promise.all(written);
    expect(events.slice(1).sort()).toEqual(['one', 'two']);
  });

  test('during a flush waits for the next one, with all others of that time', async () => {
    holdFlushes();
    const first = write('first');
    await turns();
    const later = [write('second'), append('third'), write('fourth')];
    await turns();
    expect(events).toEqual(['flush']);
    endFlush?.();
    await first;
    await turns();
    expect(events).toEqual(['flush', 'first', 'flush']);
    endFlush?.();
    await Promise.all(later);
    expect(events.slice(3).sort()).toEqual(['fourth', 'second', 'third']);
  });

  test('that came too late for a flush under way is not answered with it', async () => {
    holdFlushes();
    const first = write('first');
    await turns();
    // More than a batch takes: it commits although a flush is under way.
    let commits = 0;
    sqlite.faults.beforeCommit = () => {
      commits += 1;
    };
    const many = Array.from({ length: 300 }, (_, n) => append(`n${n}`));
    while (commits === 0) await turns(1);
    endFlush?.();
    await first;
    await turns();
    expect(events).toEqual(['flush', 'flush', 'first']);
    delete sqlite.faults.flush;
    endFlush?.();
    await Promise.all(many);
  });

  test('that wrote nothing waits for what it may have seen, and has no flush of its own', async () => {
    await write('there');
    holdFlushes();
    const refuse = () =>
      named(
        'refused',
        sqlite.storage.write('x', async (tx) => {
          await tx.get('SELECT name FROM things');
          throw new Error('it is there');
        }),
      );
    await refuse();
    expect(events).toEqual(['there', 'refused failed']);
    const first = write('first');
    await turns();
    const second = refuse();
    await turns();
    expect(events.slice(2)).toEqual(['flush']);
    endFlush?.();
    await Promise.all([first, second]);
    expect(events.slice(2)).toEqual(['flush', 'first', 'refused failed']);
  });

  test('on a disk that hangs: a bounded number commits, the others wait', async () => {
    let commits = 0;
    sqlite.faults.beforeCommit = () => {
      commits += 1;
    };
    holdFlushes();
    const many = Array.from({ length: 4_000 }, (_, n) => append(`n${n}`));
    await turns(4_000);
    expect(commits).toBe(8);
    delete sqlite.faults.flush;
    endFlush?.();
    await Promise.all(many);
    expect(await sqlite.names()).toHaveLength(4_000);
  });
});

describe('a read', () => {
  test('of a commit that is not on disk yet resolves after its flush', async () => {
    holdFlushes();
    const first = write('first');
    await turns();
    const read = named('read', sqlite.names());
    const failing = named(
      'rejected',
      sqlite.storage.read(() => Promise.reject(new Error('it is there'))),
    );
    await turns();
    expect(events).toEqual(['flush']);
    endFlush?.();
    await Promise.all([first, read, failing]);
    expect(events.sort()).toEqual(['first', 'flush', 'read', 'rejected failed']);
  });

  test('of what is on disk waits for nothing', async () => {
    await write('first');
    holdFlushes();
    await named('read', sqlite.names());
    expect(events).toEqual(['first', 'read']);
  });
});

describe('a flush that fails', () => {
  test('does not do so because no file can be opened any more', async () => {
    using other = temporaryFolder();
    const fresh = openSqlite(other.path, {}, { ...silentObserver, unflushed });
    const log = join(other.path, 'relay.sqlite-wal');
    renameSync(log, `${log}-gone`);
    try {
      await Promise.race([fresh.write('x', (tx) => tx.run('CREATE TABLE t (n TEXT)')), turns(200)]);
      expect(events).toEqual([]);
    } finally {
      renameSync(`${log}-gone`, log);
      await fresh[Symbol.asyncDispose]();
    }
  });

  test('is told at once; nothing that depends on it is ever answered, or flushed again', async () => {
    holdFlushes();
    void write('first');
    await turns();
    void write('second');
    void named('read', sqlite.names());
    await turns();
    endFlush?.(new Error('input/output error'));
    await turns(100);
    expect(events).toEqual(['flush', 'ends: input/output error']);
    void write('third');
    await turns(100);
    expect(events).toHaveLength(2);
  });

  test('ends the process with code 74 and a line in the log; the next start has what was answered', async () => {
    const program = new URL('./unflushable-process.ts', import.meta.url).pathname;
    using data = temporaryFolder();
    const child = spawn(process.execPath, [program, data.path], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const lines: string[] = [];
    createInterface(child.stdout).on('line', (line) => lines.push(line));
    let log = '';
    child.stderr.on('data', (text) => {
      log += text;
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(74);
    expect(log).toMatch(/"level":60.*the disk does not store what is written: check it/);
    expect(lines.length).toBeGreaterThan(2);
    await using again = openSqlite(data.path, {}, silentObserver);
    expect(await thingNames(again)).toEqual(expect.arrayContaining(lines));
  });
});

describe('flushes in COMMIT', () => {
  const synchronous = (tx: Writer) => tx.get('PRAGMA synchronous');
  const [normal, full] = [{ synchronous: 1 }, { synchronous: 2 }];

  test('are of schema changes, of commands next to a relay, and without an observer', async () => {
    expect(await sqlite.storage.write('x', synchronous)).toEqual(normal);
    expect(await sqlite.storage.define(synchronous)).toEqual(full);
    expect(await sqlite.storage.write('x', synchronous)).toEqual(normal);
    {
      await using command = openSqliteAlongside(sqlite.path);
      expect(await command.write('x', synchronous)).toEqual(full);
    }
    using other = temporaryFolder();
    await using alone = openSqlite(other.path);
    expect(await alone.write('x', synchronous)).toEqual(full);
    expect(await alone.define(synchronous)).toEqual(full);
    expect(await alone.write('x', synchronous)).toEqual(full);
  });
});
