/** A disk under SQLite: what was flushed survives a power cut, and it can be full or fail. */
import fs, {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Chance } from './chance.ts';
import { DurableLog } from './durable-log.ts';

/** The result codes of SQLite that a fault answers with. */
const faultCodes = { locked: 5, full: 13, failing: 10, unflushable: 10 } as const;
export type DiskFault = keyof typeof faultCodes;

/** Milliseconds that a flush takes at most; of some, a disk makes much more. */
const longestFlush = { most: 10, stalled: 500 } as const;
const stalledShare = 0.02;

const disks = new Map<string, SimulatedDisk>();

export function diskOfFolder(folder: string): SimulatedDisk | undefined {
  return disks.get(folder);
}

/** The disk of an open file. */
export function diskOfFile(file: number): SimulatedDisk | undefined {
  for (const disk of disks.values()) if (disk.has(file)) return disk;
  return undefined;
}

/** Taken before a simulation replaces them. */
const { closeSync } = fs;
const { prepare } = DatabaseSync.prototype;

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
  /** Whether a flush does nothing, and whether what is written again stays lost: broken on purpose. */
  skipsFlushes = false;
  ignoresRewrites = false;
  /** Called when a flush begins, with the milliseconds that it takes at most. */
  onFlush: ((longest: number) => void) | undefined;
  readonly #parts: DiskFiles;
  readonly #chance: Chance;
  readonly #open = new Set<DatabaseSync>();
  #reader: DatabaseSync | undefined;
  readonly #statements = new Map<string, StatementSync>();
  #starts = 0;
  #folder = '';
  readonly #durable = new DurableLog();
  /** Whether a flush has failed of which the process was not told. */
  #hasUntoldFailure = false;
  /** Files that the process has open, by their descriptors. */
  readonly #files = new Map<number, string>();
  /** Small files as they were when the machine was started. */
  #earlier = new Map<string, Buffer>();

  /**
   * @param files what the folder holds
   * @param template files that every machine begins with
   */
  constructor(files: DiskFiles, template: string, chance: Chance) {
    this.#parts = files;
    this.#chance = chance;
    this.#mount(template);
  }

  /** The data folder; another one after each restart. */
  get folder(): string {
    return this.#folder;
  }

  /** Path of the database's log. */
  get #log(): string {
    return join(this.#folder, `${this.#parts.database}-wal`);
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
    this.#reader ??= new DatabaseSync(join(this.#folder, this.#parts.database), { readOnly: true });
    const statement = this.#statements.get(sql) ?? prepare.call(this.#reader, sql);
    this.#statements.set(sql, statement);
    return statement.all(...values) as T[];
  }

  /** Removes the folder. */
  [Symbol.dispose](): void {
    this.#close();
    disks.delete(this.#folder);
    rmSync(this.#parts.root, { recursive: true, force: true });
  }

  /** Called for each database of the folder. */
  opened(database: DatabaseSync): void {
    this.#open.add(database);
  }

  closed(database: DatabaseSync): void {
    this.#open.delete(database);
  }

  /** Whether its process has this file open. */
  has(file: number): boolean {
    return this.#files.has(file);
  }

  fileOpened(file: number, path: string): void {
    this.#files.set(file, path);
  }

  fileClosed(file: number): void {
    this.#files.delete(file);
  }

  /** Called after each write to a file, with its end. */
  fileWritten(file: number, end: number): void {
    if (this.#files.get(file) === this.#log && !this.ignoresRewrites) this.#durable.rewritten(end);
  }

  fileFlushed(file: number): void {
    if (this.#files.get(file) === this.#log) this.#durable.flushed(this.#durable.mark());
  }

  /** Called after each commit of a database. */
  committed({ frames, hasFlushed }: Commit): void {
    this.#durable.committed(frames);
    if (hasFlushed) this.#durable.flushed(this.#durable.mark());
  }

  /** Called after each copy of the log into the database: SQLite flushes the log before. */
  copied(): void {
    this.#durable.flushed(this.#durable.mark());
  }

  /**
   * Flushes the log, which takes a while: what is committed meanwhile is not on disk then.
   *
   * @param pause waits so many milliseconds
   * @throws Error if the disk cannot: the process cannot know what is on disk then
   */
  async flush(pause: (milliseconds: number) => Promise<void>): Promise<void> {
    const mark = this.#durable.mark();
    const longest = longestFlush[this.#chance.is(stalledShare) ? 'stalled' : 'most'];
    this.onFlush?.(longest);
    await pause(this.#chance.number() * longest);
    if (this.#hasUntoldFailure || this.fault === 'unflushable') {
      this.#durable.failed();
      throw new Error('simulated: the log cannot be flushed');
    }
    if (!this.skipsFlushes) this.#durable.flushed(mark);
  }

  /** @throws what SQLite would, while a fault is set */
  checkFault(sql: string): void {
    const { fault } = this;
    if (fault === undefined || !faulty[fault].test(sql)) return;
    if (fault === 'unflushable') {
      this.#durable.failed();
      this.#hasUntoldFailure = true;
    }
    throw Object.assign(new Error(`simulated: ${fault}`), { errcode: faultCodes[fault] });
  }

  #restart(isPowerCut: boolean): void {
    const before = this.#folder;
    disks.delete(before);
    const earlier = this.#earlier;
    // Before the connections are closed: that would write their log into the database.
    this.#mount(before);
    if (isPowerCut) {
      const left = this.#durable.cut();
      if (existsSync(this.#log)) truncateSync(this.#log, left);
      // Never flushed: they may have any of their earlier contents.
      for (const [name, content] of earlier) {
        if (this.#chance.is(0.5)) writeFileSync(join(this.#folder, name), content);
      }
    }
    this.#hasUntoldFailure = false;
    this.#close();
    rmSync(before, { recursive: true, force: true });
  }

  #mount(source: string): void {
    this.#starts += 1;
    this.#folder = join(this.#parts.root, String(this.#starts));
    mkdirSync(this.#folder);
    this.#earlier = new Map();
    const { database, unflushed } = this.#parts;
    for (const name of [database, `${database}-wal`, ...unflushed]) {
      const path = join(source, name);
      if (!existsSync(path)) continue;
      copyFileSync(path, join(this.#folder, name));
      if (unflushed.includes(name)) this.#earlier.set(name, readFileSync(path));
    }
    this.#durable.moved(this.#log);
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
    for (const file of this.#files.keys()) closeSync(file);
    this.#files.clear();
  }
}

/** What a disk needs to know of a commit. */
export interface Commit {
  /** Frames of the log that are in use. */
  readonly frames: number;
  /** Whether COMMIT has flushed the log. */
  readonly hasFlushed: boolean;
}

/** The statements that fail for each fault. */
const faulty: Readonly<Record<DiskFault, RegExp>> = {
  locked: /^\s*BEGIN IMMEDIATE/,
  full: /^\s*(INSERT|UPDATE|COMMIT|PRAGMA wal_checkpoint\(PASSIVE)/,
  failing: /^\s*(INSERT|UPDATE|DELETE|COMMIT|PRAGMA wal_checkpoint\(PASSIVE)/,
  // The flush of a commit is not SQLite's.
  unflushable: /^PRAGMA wal_checkpoint\(PASSIVE/,
};
