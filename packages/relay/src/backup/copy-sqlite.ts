/** A SQLite database copied as one snapshot while a relay writes to it. */
import { closeSync, openSync, statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { runSqlite } from '../storage/sqlite/process.ts';
import type { BackupWork } from './backup-file.ts';

/** Milliseconds between two looks at how much was written. */
const lookInterval = 200;

/** Reads one snapshot and holds up no writer; SQLite's stepwise backup begins again with each write. */
const program = "database.prepare('VACUUM INTO ?').run(value);";

/**
 * Copies the database at `from` to a new file that only its own user can read.
 * @throws Error with what SQLite says, of a full disk for example; the reason of the signal
 */
export async function copySqlite(
  from: string,
  to: string,
  { signal, progress }: BackupWork,
): Promise<void> {
  closeSync(openSync(to, 'wx', 0o600));
  const total = statSync(from).size;
  let isOver = false;
  const copied = runSqlite(program, { path: from, value: to, signal }).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await Promise.race([copied, pause(lookInterval)]);
    const { size } = statSync(to);
    progress?.({ step: 'copying', done: Math.min(size, total), total, unit: 'bytes' });
  }
  await copied;
}
