import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { relayMigrations } from '../../packages/relay/src/modules.ts';
import { bindDatabase } from '../../packages/relay/src/storage/identity.ts';
import { migrate } from '../../packages/relay/src/storage/migrations.ts';
import { openSqlite } from '../../packages/relay/src/storage/sqlite/storage.ts';
import { type Attack, openKit, openSession } from './attack.ts';
import { onSmallDisk } from './relays.ts';

const main = new URL('../../packages/relay/src/main.ts', import.meta.url).pathname;

/** Rows of the database that is moved, 64 KiB each: more than the disk has room for. */
const rows = 512;

export const moveOnFullDisk: Attack = {
  title: '`posthouse move` fills the disk of the relay up, again and again, and 1 account writes',
  hasPreparation: true,
  relay: onSmallDisk,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const { caller, device } = await openSession(context);
    const from = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
    const to = join(dirname(target.folder), 'moved');
    try {
      await makeDatabase(from);
      begun();
      const write = async () => {
        const profile = context.profile(device, {});
        await caller.call('profile.publish', { ...profile });
        await setTimeout(100);
      };
      const writes = untilAborted(signal, write);
      await untilAborted(signal, () => moveUntilFull(from, to, signal));
      await writes;
    } finally {
      for (const folder of [from, to]) rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function untilAborted(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) await work();
}

/** Moves as an operator does; continues a move that failed before. */
async function moveUntilFull(from: string, to: string, signal: AbortSignal): Promise<void> {
  const args = ['--from', `sqlite:${from}`, '--to', `sqlite:${to}`];
  const child = spawn(process.execPath, [main, 'move', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (data) => {
    errors += data;
  });
  const end = () => child.kill('SIGKILL');
  signal.addEventListener('abort', end);
  const [code] = await once(child, 'close');
  signal.removeEventListener('abort', end);
  if (signal.aborted) return;
  if (code === 0 || !/full/.test(errors)) throw new Error(`the move ended with ${code}: ${errors}`);
}

/** Makes the database of another relay. */
async function makeDatabase(folder: string): Promise<void> {
  await using storage = openSqlite(folder);
  const now = Math.floor(Date.now() / 1_000);
  await migrate(storage, relayMigrations, now);
  await bindDatabase(storage, { network: 'neo:1:0x00', service: 'svc', relay: '0xaa' });
  await storage.write('relay', async (tx) => {
    const sql =
      'INSERT INTO message_envelopes (envelope_id, keep_until, envelope) VALUES (?, ?, ?)';
    const envelope = 'x'.repeat(65_536);
    for (let row = 0; row < rows; row += 1) await tx.run(sql, `envelope ${row}`, now, envelope);
  });
}
