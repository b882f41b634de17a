/** A disk under SQLite: what was flushed survives a power cut, and it can be full or fail. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Chance } from './chance.ts';

/** The result codes of SQLite that a fault answers with. */
const faultCodes = { locked: 5, full: 13, failing: 10, unflushable: 10 } as const;
export type DiskFault = keyof typeof faultCodes;

/** `PRAGMA synchronous` of a connection that flushes at each commit. */
const fullSync = 2;

const disks = new Map<string, SimulatedDisk>();

export interface DiskFiles {
  /** An empty folder. */
  readonly root: string;
  /** Name of the database. */
  readonly database: string;
  /** Names of small files that are written without a flush. */
  readonly unflushed: readonly string[];
}

/**
 * The data folder of one machine. A database in it is the real one, in files in memory; the folder
 * remembers how much of the log was flushed.
 */
export class SimulatedDisk {
  /** Every write fails like this while it is set. */
  fault: DiskFault | undefined;
  /** Changes statements, to break what uses the disk on purpose. */
  rewrite: (sql: string) => string = (sql) => sql;
  /** Whether a failing commit undoes everything and tells nothing: broken on purpose. */
  hidesFaults = false;
  readonly #files: DiskFiles;
  readonly #chance: Chance;
  readonly #open = new Set<DatabaseSync>();
  #reader: DatabaseSync | undefined;
  readonly #statements = new Map<string, StatementSync>();
  #starts = 0;
  #folder = '';
  /** Bytes of the log that a power cut leaves. */
  #flushed = 0;
  /** Small files as they were when the machine was started. */
  #earlier = new Map<string, Buffer>();

  /**
   * @param files what the folder holds
   * @param template files that every machine begins with
   */
  constructor(files: DiskFiles, template: string, chance: Chance) {
    this.#files = files;
    this.#chance = chance;
    this.#mount(template);
  }

  /** The data folder; another one after each restart. */
  get folder(): string {
    return this.#folder;
  }

  /** Path of the database's log. */
  get #log(): string {
    return join(this.#folder, `${this.#files.database}-wal`);
  }

  /** A process is killed: its connections are gone, everything that it wrote is there. */
  kill(): void {
    this.#restart(false);
  }

  /** Power is cut: what was not flushed is gone. */
  cutPower(): void {
    this.#restart(true);
  }

  /** Reads what is committed, as of now. */
  query<T>(sql: string, ...values: (string | number)[]): T[] {
    this.#reader ??= new DatabaseSync(join(this.#folder, this.#files.database), { readOnly: true });
    const statement = this.#statements.get(sql) ?? prepare.call(this.#reader, sql);
    this.#statements.set(sql, statement);
    return statement.all(...values) as T[];
  }

  /** Removes the folder. */
  [Symbol.dispose](): void {
    this.#close();
    disks.delete(this.#folder);
    rmSync(this.#files.root, { recursive: true, force: true });
  }

  /** Called for each database of the folder. */
  opened(database: DatabaseSync): void {
    this.#open.add(database);
  }

  closed(database: DatabaseSync): void {
    this.#open.delete(database);
  }

  /** Called after each commit of a database. */
  committed(synchronous: number): void {
    if (synchronous < fullSync) return;
    this.#flushed = sizeOf(this.#log);
  }

  /** @throws what SQLite would, while a fault is set */
  checkFault(sql: string): void {
    const { fault } = this;
    if (fault === undefined || !faulty[fault].test(sql)) return;
    throw Object.assign(new Error(`simulated: ${fault}`), { errcode: faultCodes[fault] });
  }

  #restart(isPowerCut: boolean): void {
    const before = this.#folder;
    const flushed = this.#flushed;
    disks.delete(before);
    const earlier = this.#earlier;
    // Before the connections are closed: that would write their log into the database.
    this.#mount(before);
    if (isPowerCut) {
      const log = this.#log;
      if (sizeOf(log) > flushed) truncateSync(log, flushed);
      // Never flushed: they may have any of their earlier contents.
      for (const [name, content] of earlier) {
        if (this.#chance.is(0.5)) writeFileSync(join(this.#folder, name), content);
      }
    }
    this.#flushed = sizeOf(this.#log);
    this.#close();
    rmSync(before, { recursive: true, force: true });
  }

  #mount(source: string): void {
    this.#starts += 1;
    this.#folder = join(this.#files.root, String(this.#starts));
    mkdirSync(this.#folder);
    this.#earlier = new Map();
    const { database, unflushed } = this.#files;
    for (const name of [database, `${database}-wal`, ...unflushed]) {
      const path = join(source, name);
      if (!existsSync(path)) continue;
      copyFileSync(path, join(this.#folder, name));
      if (unflushed.includes(name)) this.#earlier.set(name, readFileSync(path));
    }
    disks.set(this.#folder, this);
  }

  #close(): void {
    this.#statements.clear();
    this.#reader?.close();
    this.#reader = undefined;
    for (const database of [...this.#open]) {
      if (database.isOpen) database.close();
    }
    this.#open.clear();
  }
}

/** The statements that fail for each fault. */
const faulty: Readonly<Record<DiskFault, RegExp>> = {
  locked: /^\s*BEGIN IMMEDIATE/,
  full: /^\s*(INSERT|UPDATE|COMMIT)/,
  failing: /^\s*(INSERT|UPDATE|DELETE|COMMIT)/,
  unflushable: /^COMMIT/,
};

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The methods of databases as they are. */
const { prepare, exec, close } = DatabaseSync.prototype;

const diskOfDatabase = new WeakMap<DatabaseSync, SimulatedDisk>();

/** The disk of a database's folder. */
function diskOf(database: DatabaseSync): SimulatedDisk | undefined {
  const known = diskOfDatabase.get(database);
  if (known !== undefined) return known;
  const path = database.isOpen ? database.location() : null;
  const disk = path === null ? undefined : disks.get(dirname(path));
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
    if (sql === 'COMMIT') disk.committed(synchronousOf(this));
    return result;
  };
  const onDisk: Pick<StatementSync, 'all' | 'get' | 'run'> = {
    all: (...values: never[]) => use(() => statement.all(...values)),
    get: (...values: never[]) => use(() => statement.get(...values)),
    run: (...values: never[]) => use(() => statement.run(...values)),
  };
  return onDisk as StatementSync;
}

function synchronousOf(database: DatabaseSync): number {
  const row = prepare.call(database, 'PRAGMA synchronous').get();
  return (row as { synchronous: number }).synchronous;
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
