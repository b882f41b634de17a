/** The methods of `node:sqlite`, on a disk of a simulation. */
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type Commit, diskOfFolder, type SimulatedDisk } from './disk.ts';

/** `PRAGMA synchronous` of a connection that flushes at each commit. */
const fullSync = 2;

/** The methods of databases as they are. */
const { prepare, exec, close } = DatabaseSync.prototype;

const diskOfDatabase = new WeakMap<DatabaseSync, SimulatedDisk>();

/** The disk of a database's folder. */
function diskOf(database: DatabaseSync): SimulatedDisk | undefined {
  const known = diskOfDatabase.get(database);
  if (known !== undefined) return known;
  const path = database.isOpen ? database.location() : null;
  const disk = path === null ? undefined : diskOfFolder(dirname(path));
  if (disk === undefined) return undefined;
  diskOfDatabase.set(database, disk);
  disk.opened(database);
  return disk;
}

/** A database of a disk tells it what was committed, and fails as the disk does. */
function prepareOnDisk(this: DatabaseSync, sql: string): StatementSync {
  const disk = diskOf(this);
  const statement = prepare.call(this, disk?.rewrite(sql) ?? sql);
  if (disk === undefined) return statement;
  const use = <T>(query: () => T): T => {
    if (disk.hidesFaults && disk.fault !== undefined && sql === 'COMMIT') {
      exec.call(this, 'ROLLBACK');
      return undefined as T;
    }
    disk.checkFault(sql);
    const result = query();
    if (sql === 'COMMIT') disk.committed(afterCommit(this));
    if (sql === 'PRAGMA wal_checkpoint(PASSIVE)') disk.copied();
    return result;
  };
  const onDisk: Pick<StatementSync, 'all' | 'get' | 'run'> = {
    all: (...values: never[]) => use(() => statement.all(...values)),
    get: (...values: never[]) => use(() => statement.get(...values)),
    run: (...values: never[]) => use(() => statement.run(...values)),
  };
  return onDisk as StatementSync;
}

const questions = new WeakMap<
  DatabaseSync,
  readonly [frames: StatementSync, mode: StatementSync]
>();

function afterCommit(database: DatabaseSync): Commit {
  const asked = questions.get(database) ?? [
    prepare.call(database, 'PRAGMA wal_checkpoint(NOOP)'),
    prepare.call(database, 'PRAGMA synchronous'),
  ];
  questions.set(database, asked);
  const { synchronous } = asked[1].get() as { synchronous: number };
  const { log } = asked[0].get() as { log: number };
  return { frames: log, hasFlushed: synchronous >= fullSync };
}

/** Puts simulated disks under every database of their folders. */
export function replaceDatabases(): void {
  Object.assign(DatabaseSync.prototype, {
    prepare: prepareOnDisk,
    exec(this: DatabaseSync, sql: string) {
      exec.call(this, diskOf(this)?.rewrite(sql) ?? sql);
    },
    close(this: DatabaseSync) {
      diskOf(this)?.closed(this);
      close.call(this);
    },
  });
}
