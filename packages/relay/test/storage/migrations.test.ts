import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/storage/migrations.ts';
import type { Migration, Storage } from '../../src/storage/types.ts';
import { RelayData } from '../support/engine.ts';

let data: RelayData;
let storage: Storage;

beforeEach(async () => {
  data = await RelayData.empty();
  storage = await data.open();
});

afterEach(async () => {
  await storage[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
});

const first: Migration = { id: 100, name: 'a', statements: ['CREATE TABLE a (x BIGINT)'] };
const second: Migration = {
  id: 200,
  name: 'b',
  statements: ['CREATE TABLE b (x BIGINT)', 'INSERT INTO b VALUES (1)'],
};

test('migrations run once, in the order of their numbers', async () => {
  expect(await migrate(storage, [second, first], 1)).toEqual([100, 200]);
  expect(await migrate(storage, [first, second], 2)).toEqual([]);
  expect(await storage.read((tx) => tx.all('SELECT x FROM b'))).toHaveLength(1);
});

test('a lower number than the last applied still runs: numbers are per subject', async () => {
  await migrate(storage, [second], 1);
  expect(await migrate(storage, [first, second], 1)).toEqual([100]);
});

test('a failing migration leaves nothing of any', async () => {
  const broken: Migration = { id: 300, name: 'c', statements: ['CREATE TABLE c (x)', 'NONSENSE'] };
  await expect(migrate(storage, [first, broken], 1)).rejects.toThrow(/syntax/);
  expect(await migrate(storage, [first], 1)).toEqual([100]);
});

test('an applied migration that was changed is refused', async () => {
  await migrate(storage, [first], 1);
  const changed = { ...first, statements: ['CREATE TABLE a (y BIGINT)'] };
  await expect(migrate(storage, [changed], 1)).rejects.toThrow(
    'migration 100 (a) was changed after it was applied',
  );
});

test('another indentation is no change', async () => {
  await migrate(storage, [first], 1);
  const moved = { ...first, statements: ['CREATE TABLE a\n    (x BIGINT)\n'] };
  expect(await migrate(storage, [moved], 1)).toEqual([]);
});

test('a database of a newer relay is refused', async () => {
  await migrate(storage, [first, second], 1);
  await expect(migrate(storage, [first], 1)).rejects.toThrow(
    'the database is newer than this relay: it has migration 200 (b)',
  );
});

test('two migrations of one number are refused', async () => {
  await expect(migrate(storage, [first, { ...second, id: 100 }], 1)).rejects.toThrow(
    'migration 100 exists twice',
  );
});
