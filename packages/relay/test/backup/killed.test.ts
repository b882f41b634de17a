/** `posthouse backup` and `restore` killed at each of their steps: nothing looks whole that is not. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { verifyBackup } from '../../src/backup/index.ts';
import { Relay } from '../../src/index.ts';
import { relayMigrations } from '../../src/modules.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';

/** Of several batches. */
const rows = 12_000;

let folder: ReturnType<typeof temporaryFolder>;
let data: string;
beforeAll(async () => {
  folder = temporaryFolder();
  data = join(folder.path, 'data');
  mkdirSync(data);
  const options = { data, dev: true, listen: '127.0.0.1:0' };
  await (await Relay.start(options, { log: pino({ level: 'silent' }) }))[Symbol.asyncDispose]();
  using database = new DatabaseSync(join(data, 'relay.sqlite'));
  database.exec(`INSERT INTO message_envelopes (envelope_id, keep_until, envelope)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
    SELECT i, 1, hex(zeroblob(1000)) FROM n`);
});
afterEach(killAll);
afterAll(() => folder[Symbol.dispose]());

const killed = fileURLToPath(new URL('killed-command.ts', import.meta.url));

/** Starts a command that ends with SIGKILL at a moment. */
const startKilled = (args: readonly string[], moment: Record<string, string>) =>
  posthouse(args, { NODE_OPTIONS: `--require=${killed}`, ...moment });

function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test('the process that copies ends with its killed command, in the middle of a call of SQLite', async () => {
  const to = join(folder.path, 'orphan');
  const copying = join(folder.path, 'copying');
  const args = ['backup', '--data', data, '--to', to];
  expect(await startKilled(args, { TEST_COPYING: copying }).ended).toBe('SIGKILL');
  const pid = Number(readFileSync(copying, 'utf8'));
  try {
    await expect.poll(() => isRunning(pid)).toBe(false);
  } finally {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  }
  expect(existsSync(to)).toBe(false);
});

test.each([
  'copying',
  'reading schema_migrations',
  'reading message_envelopes',
  'reading timeline_heads',
])('a backup killed at "%s" leaves no file under its name, and can be run again', async (step) => {
  const to = join(folder.path, `backup ${step}`);
  const args = ['backup', '--data', data, '--to', to, '--json'];
  expect(await startKilled(args, { TEST_KILL_AT: step }).ended).toBe('SIGKILL');
  expect(existsSync(to)).toBe(false);
  expect(await posthouse(args).ended).toBe(0);
  expect((await verifyBackup(to, { migrations: relayMigrations })).problemCount).toBe(0);
  expect(readdirSync(folder.path).filter((name) => name.startsWith(`backup ${step}.`))).toEqual([]);
});

test.each([
  'checking the file',
  'checking message_envelopes',
  'copying',
  'migrating',
  'raising sequences',
])(
  'no relay starts on what a restore killed at "%s" leaves, and it can be run again',
  async (step) => {
    const from = join(folder.path, 'whole');
    if (!existsSync(from)) {
      await posthouse(['backup', '--data', data, '--to', from]).ended;
    }
    const to = join(folder.path, `restored ${step}`);
    const args = ['restore', '--from', from, '--to', to, '--json'];
    expect(await startKilled(args, { TEST_KILL_AT: step }).ended).toBe('SIGKILL');
    if (existsSync(join(to, 'relay.sqlite'))) {
      expect(() => openSqlite(to)).toThrow('was not restored to the end: run the same');
    }
    expect(await posthouse(args).ended).toBe(0);
    await using storage = openSqlite(to);
    expect(
      await storage.read((tx) => tx.get('SELECT COUNT(*) AS n FROM message_envelopes')),
    ).toEqual({ n: rows });
  },
);
