/** The stores that Node has. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MemoryStore } from '../src/index.ts';
import { SqliteStore } from '../src/node.ts';
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

test('a SQLite file of a newer layout is refused, and left as it is', () => {
  const path = newPath();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99');
  database.close();
  expect(() => SqliteStore.open(path)).toThrow(expect.objectContaining({ code: 'store_mismatch' }));
});
