import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import type { TestContext } from '@posthouse/conformance';
import { databaseOf } from '../../packages/relay/src/storage/sqlite/folder.ts';
import { type Attack, openKit, openSession } from './attack.ts';

const accounts = 8;
/** Milliseconds between two writes of one account. */
const interval = 50;
/** Milliseconds of each lock, in turn: writes wait for the short ones and are refused during the long one. */
const locks = [400, 400, 400, 2_000];
/** Milliseconds without a lock after each. */
const gap = 600;
/** Milliseconds for which SQLite waits for a transaction of the relay, in this process. */
const patience = 20;
/** SQLite's result code for a lock of another connection. */
const busy = 5;

export const foreignLock: Attack = {
  title:
    'another process locks the database for 400 ms of each second, and for 2 s at times, and 8 accounts write',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const sessions: Session[] = [];
    while (sessions.length < accounts && !signal.aborted) sessions.push(await openSession(context));
    using database = new DatabaseSync(databaseOf(target.folder), { timeout: patience });
    begun();
    const writes = sessions.map((session) => write(context, session, signal));
    for (let count = 0; !signal.aborted; count += 1) {
      await lock(database, locks[count % locks.length] as number, signal);
      await setTimeout(gap);
    }
    await Promise.all(writes);
  },
};

type Session = Awaited<ReturnType<typeof openSession>>;

/** Writes again and again; what the relay refuses meanwhile is not tried again. */
async function write(
  context: TestContext,
  { caller, device }: Session,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await caller.call('profile.publish', { ...context.profile(device, {}) });
    await setTimeout(interval);
  }
}

/** Holds the lock of a writer for some milliseconds. */
async function lock(database: DatabaseSync, length: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      database.exec('BEGIN IMMEDIATE');
      break;
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== busy) throw error;
      await setTimeout(1);
    }
  }
  if (!database.isTransaction) return;
  await setTimeout(length);
  database.exec('ROLLBACK');
}
