/** Writes the embedded database anew, without the room that it does not use. */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ProgressState } from '@posthouse/protocol/progress';
import { readDiskSize } from '../disk-room.ts';
import { SqliteConnection } from './connection.ts';
import { failureKind } from './failures.ts';
import { lockFolder, requireDatabase } from './folder.ts';
import { givesBack, synchronous, undoOnDisk } from './open-writer.ts';
import { runSqlite } from './process.ts';
import { settleLog } from './settle-log.ts';

/** Milliseconds to wait for another program that reads or writes the database. */
const lockTimeout = 1_000;
/** What is kept is written to a new file, then to the log. */
const copies = 2;
/** Bytes for indexes that are sorted, and the log's headers. */
const margin = 33_554_432;
/** Milliseconds between two looks at how much was written. */
const lookInterval = 200;

/** Bytes of the database before and after. */
export interface Compacted {
  readonly before: number;
  readonly after: number;
}

export interface CompactOptions {
  /** Ends it: the database is as it was. */
  readonly signal?: AbortSignal | undefined;
  readonly progress?: (state: ProgressState) => void;
}

/**
 * Compacts the database in a data folder that no relay uses, and lets it give unused room back by
 * itself from then on. All or nothing: if the process is killed, the database is as it was.
 *
 * @throws Error with a sentence for operators: a relay uses the folder, the disk has too little room;
 *   the reason of the signal
 */
export async function compactSqlite(
  directory: string,
  options: CompactOptions = {},
): Promise<Compacted> {
  const path = requireDatabase(directory);
  const lock = lockFolder(directory);
  try {
    const before = await prepare(path);
    await rewrite(path, before.used, options);
    return { before: before.bytes, after: statSync(path).size };
  } catch (error) {
    if (failureKind(error) !== 'locked') throw error;
    throw new Error(`${path}: another program uses it: end that, then try again`, { cause: error });
  } finally {
    lock.close();
  }
}

/** Checks that the database can be compacted; returns its bytes, and those in use. */
async function prepare(path: string): Promise<{ bytes: number; used: number }> {
  // The temporary file goes to the disk that is checked, not to the system's folder for such files.
  process.env.SQLITE_TMPDIR = dirname(path);
  const connection = new SqliteConnection(path, { readOnly: false, lockTimeout });
  try {
    connection.execute(synchronous.commit);
    settleLog(connection, path);
    // Refuses now what would end the long part: another program's lock.
    connection.execute('BEGIN IMMEDIATE; ROLLBACK');
    const { pages, unused, pageSize } = spaceOf(connection);
    const used = (pages - unused) * pageSize;
    const { free } = await readDiskSize(dirname(path));
    const needed = copies * used + margin;
    if (free < needed) {
      const MiB = (bytes: number) => `${Math.ceil(bytes / 1_048_576)} MiB`;
      throw new Error(
        `compacting needs ${MiB(needed)} of free disk, and ${dirname(path)} has ${MiB(free)}: ` +
          'make room first; without it, a relay that has deleted much reuses the room itself',
      );
    }
    return { bytes: pages * pageSize, used };
  } finally {
    connection.close();
  }
}

/** SQLite tells nothing of a VACUUM under way. What it writes is missing from the free disk. */
async function rewrite(path: string, used: number, { signal, progress }: CompactOptions) {
  const statements = [synchronous.commit, undoOnDisk, givesBack, 'VACUUM'];
  const program = `
    database.exec(value);
    database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();`;
  const total = copies * used;
  const { free } = await readDiskSize(dirname(path));
  let done = 0;
  const show = () => progress?.({ step: 'compacting', done, total, unit: 'bytes' });
  let isOver = false;
  const written = runSqlite(program, {
    ...{ path, value: statements.join(';'), access: 'write', signal },
  }).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    show();
    await Promise.race([written, pause(lookInterval)]);
    // Other programs write and delete too: it is an estimate that never goes back.
    const { free: left } = await readDiskSize(dirname(path));
    done = Math.max(done, Math.min(free - left, total - 1));
  }
  await written;
  done = total;
  show();
}

function spaceOf(connection: SqliteConnection) {
  const space = `SELECT page_size AS "pageSize", page_count AS pages, freelist_count AS unused
    FROM pragma_page_size, pragma_page_count, pragma_freelist_count`;
  return connection.get(space, []) as { pageSize: number; pages: number; unused: number };
}
