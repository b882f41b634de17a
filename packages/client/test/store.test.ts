/** What every store must do; the same suite for each. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MemoryStore, type Store } from '../src/index.ts';
import { SqliteStore } from '../src/node.ts';
import { Collection } from '../src/store/collection.ts';

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

const kinds: Record<string, () => Store> = {
  memory: () => new MemoryStore(),
  'a SQLite file': () => SqliteStore.open(newPath()),
};

describe.each(Object.entries(kinds))('%s', (_, open) => {
  test('keeps what was put, until it is deleted', async () => {
    await using store = open();
    await store.write((tx) => tx.put('a', 'k', 'one'));
    await store.write((tx) => tx.put('a', 'k', 'two'));
    expect(await store.read((tx) => tx.get('a', 'k'))).toBe('two');
    expect(await store.read((tx) => tx.get('b', 'k'))).toBeUndefined();
    await store.write((tx) => tx.delete('a', 'k'));
    expect(await store.read((tx) => tx.get('a', 'k'))).toBeUndefined();
  });

  test('lists in order of keys, by prefix, between keys, limited, backwards', async () => {
    await using store = open();
    await store.write(async (tx) => {
      for (const key of ['b/2', 'a', 'b/1', 'c', 'b/10', 'b']) await tx.put('x', key, key);
      await tx.put('y', 'b/0', 'elsewhere');
    });
    const keys = async (
      range?: Parameters<Parameters<Parameters<Store['read']>[0]>[0]['list']>[1],
    ) => (await store.read((tx) => tx.list('x', range))).map(([key]) => key);
    expect(await keys()).toEqual(['a', 'b', 'b/1', 'b/10', 'b/2', 'c']);
    expect(await keys({ prefix: 'b/' })).toEqual(['b/1', 'b/10', 'b/2']);
    expect(await keys({ prefix: 'b/', after: 'b/1' })).toEqual(['b/10', 'b/2']);
    expect(await keys({ after: 'b', limit: 2 })).toEqual(['b/1', 'b/10']);
    expect(await keys({ limit: 2, reverse: true })).toEqual(['c', 'b/2']);
    expect(await keys({ limit: 0 })).toEqual([]);
    expect(await keys({ prefix: 'b/', before: 'b/2' })).toEqual(['b/1', 'b/10']);
    expect(await keys({ before: 'b/2', limit: 1, reverse: true })).toEqual(['b/10']);
    expect(await keys({ after: 'b', before: 'b/1' })).toEqual([]);
  });

  test('a write that throws leaves nothing', async () => {
    await using store = open();
    await store.write((tx) => tx.put('a', 'k', 'before'));
    const failing = store.write(async (tx) => {
      await tx.put('a', 'k', 'after');
      await tx.put('a', 'new', 'value');
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await store.read((tx) => tx.list('a'))).toEqual([['k', 'before']]);
  });

  test('writes run one after another, each on what the other left', async () => {
    await using store = open();
    const counter = new Collection<number>('counter');
    const add = () =>
      store.write(async (tx) => {
        const value = (await counter.get(tx, 'n')) ?? 0;
        await Promise.resolve();
        await counter.put(tx, 'n', value + 1);
      });
    await Promise.all(Array.from({ length: 50 }, add));
    expect(await store.read((tx) => counter.get(tx, 'n'))).toBe(50);
  });

  test('values are JSON; __proto__ is an ordinary name', async () => {
    await using store = open();
    const values = new Collection<unknown>('values');
    const value = JSON.parse('{"__proto__":{"a":1},"b":[null,true,"é😀"]}');
    await store.write((tx) => values.put(tx, 'k', value));
    const read = await store.read((tx) => values.get(tx, 'k'));
    expect(JSON.stringify(read)).toBe('{"__proto__":{"a":1},"b":[null,true,"é😀"]}');
  });
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

test('a SQLite file of a newer layout is refused, and left as it is', () => {
  const path = newPath();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99');
  database.close();
  expect(() => SqliteStore.open(path)).toThrow(expect.objectContaining({ code: 'store_mismatch' }));
});
