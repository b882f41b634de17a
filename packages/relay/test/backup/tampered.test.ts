/** Backups that were damaged or tampered with. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Databases, furnish } from '../move/databases.ts';
import { allKinds, backup, restoreTo } from './support.ts';

let databases: Databases;
beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

/** A backup of a few rows, with keys. */
async function smallBackup() {
  const source = await databases.sqlite();
  await furnish(source, allKinds);
  const file = join(databases.folder(), 'backup');
  await backup(source, file, { withKeys: true });
  return { file, folder: join(databases.folder(), 'new') };
}

test.each([
  ['bytes that were changed', (bytes: Buffer) => bytes.fill(0x55, 20_000, 60_000), /is damaged/],
  ['a file that ends early', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2), /is damaged/],
  ['another file', () => Buffer.from('hello'), /is no backup of posthouse: check --from/],
  ['an empty file', () => Buffer.alloc(0), /is no backup of posthouse: check --from/],
])('a restore refuses %s before it writes anything', async (_, damage, message) => {
  const { file, folder } = await smallBackup();
  writeFileSync(file, damage(readFileSync(file)));
  await expect(restoreTo(file, folder)).rejects.toThrow(message);
  expect(existsSync(folder)).toBe(false);
});

test.each([
  [
    'a changed row',
    "UPDATE timeline_heads SET head = 7 WHERE account = 'ann'",
    'rows of timeline_heads differ',
  ],
  [
    'a missing row',
    "DELETE FROM timeline_heads WHERE account = 'ann'",
    'rows of timeline_heads differ',
  ],
  ['a missing table', 'DROP TABLE route_keys', 'the table route_keys is missing'],
  ['another table', 'CREATE TABLE other (id TEXT PRIMARY KEY)', 'an unknown table other'],
  [
    'a changed key',
    "UPDATE backup_keys SET content = 'x' WHERE name = 'relay.key'",
    'its keys differ',
  ],
  [
    'a changed manifest',
    "UPDATE backup_manifest SET manifest = '{}'",
    'its list of contents is damaged',
  ],
  ['no manifest', 'DELETE FROM backup_manifest', 'is no backup of posthouse'],
])('a restore refuses a backup with %s', async (_, sql, message) => {
  const { file, folder } = await smallBackup();
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
  await expect(restoreTo(file, folder)).rejects.toThrow(message);
  expect(existsSync(folder)).toBe(false);
});
