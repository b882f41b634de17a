/** Backups that were damaged or tampered with. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BackupFile } from '../../src/backup/backup-file.ts';
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

/** Changes a backup's manifest and its digest, as one can who can write the file. */
function changeManifest(file: string, changes: object): void {
  using database = new DatabaseSync(file);
  const { manifest } = database.prepare('SELECT manifest FROM backup_manifest').get() as {
    manifest: string;
  };
  const text = JSON.stringify({ ...JSON.parse(manifest), ...changes });
  const digest = createHash('sha256').update(text).digest('hex');
  database.prepare('UPDATE backup_manifest SET manifest = ?, digest = ?').run(text, digest);
}

test.each([
  ['a relay that commands the terminal', { relay: '0xaa\u001b[2J' }],
  ['a relay of two lines', { relay: '0xaa\nall is as it must be' }],
  ['a network that commands the terminal', { network: 'neo:1\u001b[2J' }],
  ['a time that is none', { created_at: '1' }],
  ['a time beyond all dates', { created_at: 1e300 }],
  ['no tables', { tables: null }],
  ['a table that commands the terminal', { tables: { 'a\u001b[2J': {} } }],
  ['a migration that is a text', { schema: ['1\u001b[2J'] }],
  ['a key outside its folder', { keys: { '../../x': '0'.repeat(64) } }],
])('a manifest with %s is refused, with its digest too', async (_, changes) => {
  const { file, folder } = await smallBackup();
  changeManifest(file, changes);
  const refusal = `${file}: its list of contents is not one that posthouse makes: use another backup`;
  await expect(restoreTo(file, folder)).rejects.toThrow(refusal);
  expect(existsSync(folder)).toBe(false);
});

test('a manifest that is no JSON, or no object, is refused', async () => {
  for (const text of ['all is as it must be\n', 'null', '[]']) {
    const { file, folder } = await smallBackup();
    const digest = createHash('sha256').update(text).digest('hex');
    using database = new DatabaseSync(file);
    database.prepare('UPDATE backup_manifest SET manifest = ?, digest = ?').run(text, digest);
    const refusal = `${file}: its list of contents is not one that posthouse makes: use another backup`;
    await expect(restoreTo(file, folder)).rejects.toThrow(refusal);
  }
});

test('a name in the file adds no line to what is said of it', async () => {
  for (const sql of [
    'CREATE TABLE "x\nall is good\n" (a)',
    'CREATE VIEW "x\nall is good" AS SELECT 1',
  ]) {
    const { file, folder } = await smallBackup();
    using database = new DatabaseSync(file);
    database.exec(sql);
    const { message } = (await restoreTo(file, folder).catch(
      (error: Error) => error as Error,
    )) as Error;
    expect(message).toContain('all is good');
    expect(message).not.toContain('\n');
  }
});

test('a file whose own tables are views is no backup', async () => {
  for (const table of ['backup_manifest', 'backup_keys']) {
    const { file, folder } = await smallBackup();
    using database = new DatabaseSync(file);
    database.exec(`DROP TABLE ${table}; CREATE VIEW ${table} AS SELECT 1 AS manifest, 2 AS digest,
      'a' AS name, 'b' AS content WHERE FALSE`);
    await expect(restoreTo(file, folder)).rejects.toThrow('is no backup of posthouse');
  }
});

test('what is no file is no backup: a pipe would be waited for', () => {
  const folder = databases.folder();
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  for (const path of [folder, pipe]) {
    expect(() => new BackupFile(path)).toThrow(`${path} is no backup of posthouse`);
  }
});
