/** `posthouse backup` and `restore` killed at each of their steps: nothing looks whole that is not. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { verifyBackup } from '../../src/backup/index.ts';
import { Relay } from '../../src/index.ts';
import { relayMigrations } from '../../src/modules.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { type Command, killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';

/** Long enough to be killed while it is copied. */
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

/** Ends a command with SIGKILL as soon as it has printed that it is at a step. */
async function killAt(command: Command, step: string): Promise<void> {
  command.child.stdout?.on('data', () => {
    if (command.output.text.includes(`"step":"${step}"`)) command.child.kill('SIGKILL');
  });
  await command.ended;
}

/** Process IDs of the children that a process has now. */
function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  return text === '' ? [] : text.split(' ').map(Number);
}

const isRunning = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

async function isGone(pid: number): Promise<void> {
  await expect.poll(() => isRunning(pid)).toBe(false);
}

test('the process that copies ends with its killed command, and has written no whole copy', async () => {
  const to = join(folder.path, 'orphan');
  const { child, ended } = posthouse(['backup', '--data', data, '--to', to]);
  const pid = child.pid as number;
  await expect.poll(() => childrenOf(pid), { interval: 1 }).not.toEqual([]);
  const [copying] = childrenOf(pid) as [number];
  child.kill('SIGKILL');
  await ended;
  await isGone(copying);
  expect(existsSync(to)).toBe(false);
  const partial = join(`${to}.partial`, 'orphan');
  expect(statSync(partial).size).toBeLessThan(statSync(join(data, 'relay.sqlite')).size / 2);
});

test.each([
  'copying',
  'reading schema_migrations',
  'reading message_envelopes',
  'reading timeline_heads',
])('a backup killed at "%s" leaves no file under its name, and can be run again', async (step) => {
  const to = join(folder.path, `backup ${step}`);
  const args = ['backup', '--data', data, '--to', to, '--json'];
  const command = posthouse(args);
  await killAt(command, step);
  // It may have ended before the signal came.
  if (existsSync(to)) expect(await command.ended).toBe(0);
  else expect(await posthouse(args).ended).toBe(0);
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
    const command = posthouse(args);
    await killAt(command, step);
    if ((await command.ended) !== 0) {
      if (existsSync(join(to, 'relay.sqlite'))) {
        expect(() => openSqlite(to)).toThrow('was not restored to the end: run the same');
      }
      expect(await posthouse(args).ended).toBe(0);
    }
    await using storage = openSqlite(to);
    expect(
      await storage.read((tx) => tx.get('SELECT COUNT(*) AS n FROM message_envelopes')),
    ).toEqual({ n: rows });
  },
);
