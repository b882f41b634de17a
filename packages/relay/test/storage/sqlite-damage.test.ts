/** What is noticed at start: lost transactions and bad pages. */
import { cpSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';
import { storagePagesUnchecked } from '../../src/observability/storage-events.ts';
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts';
import { checkPages } from '../../src/storage/sqlite/damage.ts';
import { openSqlite, openSqliteAlongside } from '../../src/storage/sqlite/storage.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';

let events: string[];
const observer = {
  unflushed() {},
  checkpointsStopped() {},
  blocked() {},
  resumed() {},
  wentBack: (transactions: number) => void events.push(`went back ${transactions}`),
  damaged: (problem: string) => void events.push(problem),
  pagesUnchecked() {},
};
const open = (path: string) => openSqlite(path, {}, observer);

beforeEach(() => {
  events = [];
});

/** A folder as a killed process leaves it after so many writes. */
async function crashed(writes: number) {
  using folder = temporaryFolder();
  const copy = temporaryFolder();
  await using storage = open(folder.path);
  await storage.write('a', (tx) => tx.run('CREATE TABLE things (name TEXT)'));
  for (let count = 0; count < writes; count += 1) {
    await storage.write('a', (tx) =>
      tx.run('INSERT INTO things (name) VALUES (?)', 'x'.repeat(3_000)),
    );
  }
  cpSync(folder.path, copy.path, { recursive: true });
  return copy;
}

async function restart(path: string): Promise<number> {
  await using storage = open(path);
  return (await storage.read((tx) => tx.all('SELECT name FROM things'))).length;
}

describe('lost transactions', () => {
  test('none are missing after a crash, a clean stop, or a write of a command', async () => {
    using folder = await crashed(5);
    expect(await restart(folder.path)).toBe(5);
    await using alongside = openSqliteAlongside(folder.path);
    await alongside.write('a', (tx) => tx.run("INSERT INTO things (name) VALUES ('y')"));
    expect(await restart(folder.path)).toBe(6);
    expect(events).toEqual([]);
  });

  test.each([
    ['half of its bytes', (size: number) => size / 2],
    ['nothing but its header', () => 32],
    ['all but its last byte', (size: number) => size - 1],
  ])('a log that has %s is noticed, once', async (_what, left) => {
    using folder = await crashed(5);
    const log = join(folder.path, 'relay.sqlite-wal');
    truncateSync(log, left(statSync(log).size));
    await open(folder.path)[Symbol.asyncDispose]();
    expect(events).toEqual([expect.stringMatching(/^went back [1-6]$/)]);
    await open(folder.path)[Symbol.asyncDispose]();
    expect(events).toHaveLength(1);
  });

  test('an older copy of the database is noticed', async () => {
    using folder = await crashed(2);
    await restart(folder.path);
    const older = readFileSync(join(folder.path, 'relay.sqlite'));
    const storage = open(folder.path);
    for (let count = 0; count < 3; count += 1) {
      await storage.write('a', (tx) => tx.run("INSERT INTO things (name) VALUES ('z')"));
    }
    await storage[Symbol.asyncDispose]();
    writeFileSync(join(folder.path, 'relay.sqlite'), older);
    await restart(folder.path);
    expect(events).toEqual(['went back 3']);
  });
});

describe('bad pages', () => {
  const spoil = (path: string, from: number, bytes: number) => {
    const file = join(path, 'relay.sqlite');
    const content = readFileSync(file);
    content.fill(0xa5, from, from + bytes);
    writeFileSync(file, content);
  };

  test.each([
    ['a page of a table', 8_192, 4_096],
    ['the header', 0, 100],
    ['the schema', 100, 3_000],
  ])('%s: the start is refused with a sentence', async (_what, from, bytes) => {
    using folder = await crashed(5);
    await restart(folder.path);
    spoil(folder.path, from, bytes);
    expect(() => open(folder.path)).toThrow(/relay\.sqlite is damaged \(.+\): check the disk/);
  });

  test('of a database over 32 MiB: found while the relay runs', async () => {
    using folder = await crashed(5);
    {
      await using storage = open(folder.path);
      for (let count = 0; count < 9; count += 1) {
        await storage.write('a', (tx) =>
          tx.run('INSERT INTO things (name) VALUES (?)', 'x'.repeat(4_000_000)),
        );
      }
    }
    spoil(folder.path, 8_192_000, 4_096);
    await using storage = open(folder.path);
    expect(await storage.read((tx) => tx.get('SELECT 1 AS one'))).toEqual({ one: 1 });
    await vi.waitFor(
      () => expect(events).toEqual([expect.stringMatching(/is damaged \(.+\): check the disk/)]),
      { timeout: 30_000, interval: 20 },
    );
  });

  test('of a database over 32 MiB: a check that exceeds its time is logged, once', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'relay.sqlite');
    const connection = new SqliteConnection(path, { readOnly: false });
    const write = (line: string) => void events.push(line);
    const observed = {
      log: pino({ base: null, timestamp: false }, { write }),
      metrics: new Metrics(),
    };
    const unfinished = (seconds: number) => storagePagesUnchecked(observed, seconds);
    const check = { path, found: observer.damaged, unfinished, timeout: 1 };
    // One byte less would be checked here and now.
    truncateSync(path, 33_554_433);
    // A check that ends with the relay is no news.
    checkPages(connection, check)[Symbol.dispose]();
    using _check = checkPages(connection, check);
    await vi.waitFor(() => expect(events).not.toEqual([]), patience);
    connection.close();
    expect(events.map((line) => JSON.parse(line))).toEqual([
      {
        ...{ level: 40, seconds: 0.001 },
        msg: expect.stringMatching(/^not all pages of the database were checked .* run `posthouse/),
      },
    ]);
  });
});
