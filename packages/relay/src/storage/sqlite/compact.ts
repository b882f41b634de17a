/** Writes the embedded database anew, without the room that it does not use. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { readDiskSize } from '../disk-room.ts';
import { SqliteConnection } from './connection.ts';
import { failureKind } from './failures.ts';
import { databaseOf, lockFolder } from './folder.ts';
import { givesBack, synchronous, undoOnDisk } from './open-writer.ts';
import { settleLog } from './settle-log.ts';

/** Milliseconds to wait for another program that reads or writes the database. */
const lockTimeout = 1_000;
/** What is kept is written to a new file, then to the log. */
const copies = 2;
/** Bytes for indexes that are sorted, and the log's headers. */
const margin = 33_554_432;

/** Bytes of the database before and after. */
export interface Compacted {
  readonly before: number;
  readonly after: number;
}

/**
 * Compacts the database in a data folder that no relay uses, and lets it give unused room back by
 * itself from then on. All or nothing: if the process is killed, the database is as it was.
 *
 * @param begins is told the bytes that are in use, before the long part
 * @throws Error with a sentence for operators: a relay uses the folder, the disk has too little room
 */
export async function compactSqlite(
  directory: string,
  begins: (bytes: number) => void,
): Promise<Compacted> {
  const path = databaseOf(directory);
  if (!existsSync(path)) {
    throw new Error(`there is no relay.sqlite in ${directory}: check the setting \`data\``);
  }
  const lock = lockFolder(directory);
  try {
    return await compact(path, begins);
  } catch (error) {
    if (failureKind(error) !== 'locked') throw error;
    throw new Error(`${path}: another program uses it: end that, then try again`, { cause: error });
  } finally {
    lock.close();
  }
}

async function compact(path: string, begins: (bytes: number) => void): Promise<Compacted> {
  // The temporary file goes to the disk that is checked, not to the system's folder for such files.
  process.env.SQLITE_TMPDIR = dirname(path);
  const connection = new SqliteConnection(path, { readOnly: false, lockTimeout });
  try {
    connection.execute(synchronous.commit);
    connection.execute(undoOnDisk);
    settleLog(connection, path);
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
    begins(used);
    connection.execute(givesBack);
    connection.execute('VACUUM');
    connection.get('PRAGMA wal_checkpoint(TRUNCATE)', []);
    return { before: pages * pageSize, after: spaceOf(connection).pages * pageSize };
  } finally {
    connection.close();
  }
}

function spaceOf(connection: SqliteConnection) {
  const space = `SELECT page_size AS "pageSize", page_count AS pages, freelist_count AS unused
    FROM pragma_page_size, pragma_page_count, pragma_freelist_count`;
  return connection.get(space, []) as { pageSize: number; pages: number; unused: number };
}
