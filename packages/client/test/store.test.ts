/** The stores that Node has. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { MemoryStore } from '../src/index.ts';
import { SqliteStore } from '../src/node.ts';
import { Collection } from '../src/store/collection.ts';
import { sharingContract, storeContract } from './support/store-contract.ts';

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'posthouse-store-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const newPath = () => {
  files += 1;
  return join(folder, `${files}.sqlite`);
};

storeContract('memory', () => new MemoryStore());
storeContract('a SQLite file', () => SqliteStore.open(newPath()));
sharingContract('memory', () => new MemoryStore());
sharingContract('a SQLite file', () => SqliteStore.open(newPath()));

test('a list reads no row of a SQLite file but those that it returns', async () => {
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  const path = newPath();
  await using _store = SqliteStore.open(path);
  const lists = prepare.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes('ORDER BY'));
  prepare.mockRestore();
  expect(lists).toHaveLength(4);
  using database = new DatabaseSync(path, { readOnly: true });
  for (const sql of lists) {
    const rows = database.prepare(`EXPLAIN ${sql}`).all('c', 'from', 'to', 50);
    const steps = rows.map(({ opcode }) => String(opcode));
    expect(steps.filter((step) => step.startsWith('Seek'))).toHaveLength(1);
    // What the index does not decide is compared row by row, also with those that are left out.
    for (const comparison of ['Lt', 'Le', 'Gt', 'Ge', 'Eq', 'Ne', 'SorterOpen']) {
      expect(steps).not.toContain(comparison);
    }
  }
});

test('a SQLite file and its side files are for the owner alone', async () => {
  const path = newPath();
  await using store = SqliteStore.open(path);
  await store.write((tx) => tx.put('a', 'k', 'v'));
  const made = readdirSync(folder).filter((name) => join(folder, name).startsWith(path));
  expect(made.length).toBeGreaterThan(1);
  for (const name of made) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
});

test('a SQLite file that others could read is closed to them', async () => {
  const path = newPath();
  writeFileSync(path, '', { mode: 0o644 });
  await using _store = SqliteStore.open(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('two that open one SQLite file see and wait for each other', async () => {
  const path = newPath();
  await using one = SqliteStore.open(path);
  await using other = SqliteStore.open(path);
  await one.write((tx) => tx.put('a', 'k', 'v'));
  expect(await other.read((tx) => tx.get('a', 'k'))).toBe('v');
  await other.write((tx) => tx.put('a', 'k', 'w'));
  expect(await one.read((tx) => tx.get('a', 'k'))).toBe('w');
});

test('of two that open one SQLite file, each notices the commits of the other', async () => {
  const path = newPath();
  await using one = SqliteStore.open(path);
  await using other = SqliteStore.open(path);
  const changed = Promise.withResolvers<void>();
  using _watch = other.watch(changed.resolve);
  await one.write((tx) => tx.put('a', 'k', 'v'));
  await changed.promise;
});

test('of two that open one SQLite file in one thread, one waits while the other writes', async () => {
  const path = newPath();
  await using one = SqliteStore.open(path);
  await using other = SqliteStore.open(path);
  const ready = Promise.withResolvers<void>();
  const first = one.write(async (tx) => {
    await ready.promise;
    await tx.put('a', 'k', 'first');
  });
  const second = other.write((tx) => tx.put('a', 'k', 'second'));
  setImmediate(ready.resolve);
  await Promise.all([first, second]);
  expect(await one.read((tx) => tx.get('a', 'k'))).toBe('second');
});

test('of two that open one SQLite file, one holds a lock, also after a third was opened', async () => {
  const path = newPath();
  await using one = SqliteStore.open(path);
  await using other = SqliteStore.open(path);
  const { signal } = new AbortController();
  const first = await one.lock('a', { signal });
  let isHeld = true;
  const second = other.lock('a', { signal }).then((lock) => {
    expect(isHeld).toBe(false);
    return lock;
  });
  await using _third = SqliteStore.open(path);
  await one.write((tx) => tx.put('a', 'k', 'v'));
  isHeld = false;
  first[Symbol.dispose]();
  (await second)[Symbol.dispose]();
});

/** Another program, which takes a lock and keeps it. */
async function holdLock(path: string) {
  const child = spawn(process.execPath, ['--input-type=module-typescript'], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(`
    import { SqliteStore } from '@posthouse/client/node';
    const { signal } = new AbortController();
    await SqliteStore.open(${JSON.stringify(path)}).lock('a', { signal });
    console.log('locked');
    setInterval(() => {}, 60_000);
  `);
  await once(child.stdout, 'data');
  return child;
}

test('decision 0034: the lock of a program that is killed passes to the next one', async () => {
  const path = newPath();
  await using store = SqliteStore.open(path);
  for (let kills = 0; kills < 3; kills += 1) {
    const child = await holdLock(path);
    let isHeld = true;
    const { signal } = new AbortController();
    const lock = store.lock('a', { signal }).then((taken) => {
      expect(isHeld).toBe(false);
      return taken;
    });
    // What is tried meanwhile shows that the lock is held.
    await expect(store.lock('a', { signal: AbortSignal.timeout(500) })).rejects.toThrow();
    isHeld = false;
    child.kill('SIGKILL');
    (await lock)[Symbol.dispose]();
  }
});

test('a SQLite file of a newer layout is refused, and left as it is', () => {
  const path = newPath();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99');
  database.close();
  expect(() => SqliteStore.open(path)).toThrow(expect.objectContaining({ code: 'store_mismatch' }));
});

const noSqliteFile =
  'no SQLite file at all, but text that is longer than the header of one. '.repeat(9);

test.each([
  ['text', () => noSqliteFile, 'store_damaged'],
  ['a database with tables of another application', otherDatabase, 'store_mismatch'],
  ['a database with the mark of another application', markedDatabase, 'store_mismatch'],
])('a file with %s is refused with its cure, and left as it is', (_, make, code) => {
  const path = newPath();
  const content = make(path);
  if (content !== undefined) writeFileSync(path, content);
  const before = readFileSync(path);
  expect(() => SqliteStore.open(path)).toThrow(expect.objectContaining({ code }));
  expect(readFileSync(path)).toEqual(before);
});

function otherDatabase(path: string): undefined {
  using database = new DatabaseSync(path);
  database.exec('CREATE TABLE bookmarks (url TEXT)');
}

function markedDatabase(path: string): undefined {
  using database = new DatabaseSync(path);
  database.exec('PRAGMA application_id = 7');
}

test('a SQLite file whose pages are damaged is refused, and says what to do', async () => {
  const path = newPath();
  {
    await using store = SqliteStore.open(path);
    await store.write(async (tx) => {
      for (let row = 0; row < 1_000; row += 1) await tx.put('a', String(row), 'x'.repeat(100));
    });
  }
  const bytes = readFileSync(path);
  bytes.fill(0x55, 4_096);
  writeFileSync(path, bytes);
  await using store = SqliteStore.open(path);
  await expect(store.read((tx) => tx.list('a'))).rejects.toMatchObject({ code: 'store_damaged' });
});

test('a row that is damaged is a ClientError', async () => {
  await using store = new MemoryStore();
  await store.write((tx) => tx.put('values', 'k', '{"half":'));
  const values = new Collection<unknown>('values');
  const reading = store.read((tx) => values.get(tx, 'k'));
  await expect(reading).rejects.toMatchObject({ code: 'store_damaged' });
});

test('a store of this client before its files were marked is opened', async () => {
  const path = newPath();
  await SqliteStore.open(path)[Symbol.asyncDispose]();
  {
    using database = new DatabaseSync(path);
    database.exec('PRAGMA application_id = 0');
  }
  await SqliteStore.open(path)[Symbol.asyncDispose]();
});
