/** Decision 0025: what a process left in the log is made durable at the next start. */
import fs, { cpSync, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { temporaryFolder } from '../support/folder.ts';
import { silentObserver } from '../support/silent-observer.ts';

/** A folder as a relay left it that was killed, and its log. */
let left: ReturnType<typeof temporaryFolder>;
let database: string;
const logOf = () => readFileSync(`${database}-wal`);

/** What happened to files since the last start: bytes written at an offset, or a flush. */
let done: (readonly [at: number, bytes: number] | 'flush')[];

beforeEach(async () => {
  left = temporaryFolder();
  database = join(left.path, 'relay.sqlite');
  using folder = temporaryFolder();
  await using storage = openSqlite(folder.path, {}, silentObserver);
  await storage.write('x', (tx) => tx.run('CREATE TABLE things (text TEXT)'));
  const text = 'x'.repeat(3_000_000);
  await storage.write('x', (tx) => tx.run('INSERT INTO things VALUES (?)', text));
  cpSync(folder.path, left.path, { recursive: true });
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  left[Symbol.dispose]();
});

/** Starts a relay's storage and ends it again. */
async function start(): Promise<void> {
  done = [];
  const { writeSync, fdatasyncSync, openSync } = fs;
  let log: number | undefined;
  vi.spyOn(fs, 'openSync').mockImplementation((path, flags, mode) => {
    const file = openSync(path, flags, mode);
    if (String(path).endsWith('-wal')) log ??= file;
    return file;
  });
  vi.spyOn(fs, 'writeSync').mockImplementation(((file: number, ...rest: never[]) => {
    const [, , length = 0, at = 0] = rest as unknown as readonly number[];
    if (file === log) done.push([at, length]);
    return (writeSync as (...args: unknown[]) => number)(file, ...rest);
  }) as never);
  vi.spyOn(fs, 'fdatasyncSync').mockImplementation((file) => {
    if (file === log) done.push('flush');
    fdatasyncSync(file);
  });
  syncBuiltinESMExports();
  await using storage = openSqlite(left.path, {}, silentObserver);
  const found = await storage.read((tx) => tx.all('SELECT length(text) AS length FROM things'));
  expect(found).toEqual([{ length: 3_000_000 }]);
}

/** How many bytes of the log were written again before the flush, one after another. */
function written(): number {
  const pieces = done.slice(0, done.indexOf('flush')) as (readonly [number, number])[];
  return pieces.reduce((end, [at, bytes]) => {
    expect(at).toBe(end);
    return end + bytes;
  }, 0);
}

test('all of it is written again with the same bytes, then flushed, also while others read', async () => {
  const before = logOf();
  using reader = new DatabaseSync(database);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM things').get();
  await start();
  expect(done.at(-1)).toBe('flush');
  expect(written()).toBe(before.length);
  expect(logOf().subarray(0, before.length).equals(before)).toBe(true);
});

test('frames of the log that are not in use are not', async () => {
  {
    using other = new DatabaseSync(database);
    other.exec('PRAGMA wal_checkpoint(PASSIVE)');
    // The log starts anew, in a file of its former size.
    other.exec("INSERT INTO things VALUES ('y'); DELETE FROM things WHERE text = 'y'");
    using _reader = new DatabaseSync(database);
    cpSync(left.path, `${left.path}-copy`, { recursive: true });
  }
  const copy = `${left.path}-copy`;
  left[Symbol.dispose]();
  left = { path: copy, [Symbol.dispose]: () => fs.rmSync(copy, { recursive: true }) };
  database = join(copy, 'relay.sqlite');
  const size = logOf().length;
  await start();
  expect(written()).toBeGreaterThan(32);
  expect(written()).toBeLessThan(size / 2);
});

test('after a clean end there is nothing to write', async () => {
  {
    await using storage = openSqlite(left.path, {}, silentObserver);
    await storage.write('x', (tx) => tx.run('UPDATE things SET text = text'));
  }
  await start();
  expect(done).toEqual([]);
});
