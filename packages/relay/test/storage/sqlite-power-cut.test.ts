/** Decision 0025: what a relay answered survives a power cut, whatever of the rest reached the disk. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openSqlite, type SqliteStorage } from '../../src/storage/sqlite/storage.ts';
import type { AppendKind, StorageFaults } from '../../src/storage/types.ts';
import { chanceOf, share } from '../support/chance.ts';
import { temporaryFolder } from '../support/folder.ts';
import { silentObserver } from '../support/silent-observer.ts';

/** Machines with a disk of their own, by the seeds of their chances, and how often the power of each is cut. */
const seeds = { part: [1, 40], rest: [41, 200], all: [1, 200] } as const;
const cuts = 5;
const block = 4_096;
/** Bytes of the log's header, which SQLite flushes when the log starts anew. */
const logHeader = 32;
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Appends a row with the next sequence, as timelines do. */
const row: AppendKind<string, number> = {
  name: 'row',
  aggregates: () => [],
  apply: (tx, content) => {
    const { head } = tx.get<{ head: number }>('SELECT head FROM heads') as { head: number };
    tx.run('UPDATE heads SET head = ?', head + 1);
    tx.run('INSERT INTO things (sequence, content) VALUES (?, ?)', head + 1, content);
    return head + 1;
  },
  batch: undefined,
};

const bytesOf = (path: string) => Buffer.from(existsSync(path) ? readFileSync(path) : '');

/** A folder, and what a power cut would leave of its database now. */
class Machine implements Disposable {
  readonly #folder = temporaryFolder();
  readonly #chance: () => number;
  /** What of the database and of its log is on disk. */
  #database = Buffer.alloc(0);
  #log = Buffer.alloc(0);
  #checkpoints = 0;

  constructor(chance: () => number, database?: Buffer) {
    this.#chance = chance;
    if (database !== undefined) writeFileSync(this.database, database);
  }

  get folder(): string {
    return this.#folder.path;
  }

  get database(): string {
    return join(this.folder, 'relay.sqlite');
  }

  /** A flush of the log, which takes some turns: what comes after its begin need not be on disk. */
  async flush(): Promise<void> {
    const log = bytesOf(`${this.database}-wal`);
    const checkpoints = this.#checkpoints;
    for (let turns = this.#chance() * 12; turns > 0; turns -= 1) await nextTurn();
    // A checkpoint has flushed more.
    if (checkpoints === this.#checkpoints) this.#log = log;
  }

  /** Copies the log to the database; the power may be cut meanwhile. */
  checkpoint(cut: boolean): void {
    const before = bytesOf(this.database);
    this.#checkpoints += 1;
    this.#log = bytesOf(`${this.database}-wal`);
    using connection = new DatabaseSync(this.database);
    connection.exec('PRAGMA wal_checkpoint(PASSIVE)');
    const after = bytesOf(this.database);
    this.#database = cut ? this.#some(before, after) : after;
  }

  /** Everything is on disk. */
  settle(): void {
    this.#database = bytesOf(this.database);
    this.#log = bytesOf(`${this.database}-wal`);
  }

  /** Writes to another machine's folder what is left of this one. */
  cutTo(other: Machine): void {
    const log = bytesOf(`${this.database}-wal`);
    const flushed = Buffer.from(this.#log);
    log.copy(flushed, 0, 0, Math.min(logHeader, flushed.length));
    writeFileSync(other.database, this.#database);
    writeFileSync(`${other.database}-wal`, this.#some(flushed, log));
    const generation = bytesOf(join(this.folder, 'generation'));
    if (generation.length > 0) writeFileSync(join(other.folder, 'generation'), generation);
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }

  /** The bytes before, with some of the blocks that changed after. */
  #some(before: Buffer, after: Buffer): Buffer<ArrayBuffer> {
    const mixed = Buffer.alloc(Math.max(before.length, after.length));
    before.copy(mixed);
    let { length } = before;
    for (let at = 0; at < after.length; at += block) {
      const end = Math.min(at + block, after.length);
      if (before.subarray(at, end).equals(after.subarray(at, end)) || this.#chance() < 0.5)
        continue;
      after.copy(mixed, at, at, end);
      length = Math.max(length, end);
    }
    return mixed.subarray(0, length);
  }
}

/** Rows that were acknowledged or read, by sequence. */
type Known = Map<number, string>;

/** Appends that a client makes at once now and then: more than a batch takes. */
const burst = 260;

/** A client that writes and reads until it is told to stop. */
class Client {
  readonly #storage: SqliteStorage;
  readonly #chance: () => number;
  readonly #known: Known;
  #hasStopped = false;

  constructor(storage: SqliteStorage, chance: () => number, known: Known) {
    this.#storage = storage;
    this.#chance = chance;
    this.#known = known;
  }

  /** Learns nothing from now on. */
  stop(): void {
    this.#hasStopped = true;
  }

  async write(): Promise<void> {
    while (!this.#hasStopped) {
      const isBurst = this.#chance() < 0.03;
      const contents = Array.from({ length: isBurst ? burst : 1 }, () => {
        const length = this.#chance() * (isBurst ? 10 : 3_000);
        return `${this.#chance()} ${'x'.repeat(length)}`;
      });
      await Promise.all(
        contents.map(async (content) => this.#learn(await this.#write(content), content)),
      );
    }
  }

  async read(): Promise<void> {
    while (!this.#hasStopped) {
      await this.#read();
      await nextTurn();
    }
  }

  async #write(content: string): Promise<number | undefined> {
    if (this.#chance() < 0.7) return await this.#storage.append(row, content);
    const isRefused = this.#chance() < 0.2;
    const written = this.#storage.write('x', async (tx) => {
      const found = await tx.get<{ head: number }>('SELECT head FROM heads');
      const sequence = (found?.head ?? 0) + 1;
      await tx.run('UPDATE heads SET head = ?', sequence);
      await tx.run('INSERT INTO things VALUES (?, ?)', sequence, content);
      if (isRefused) throw new Error('second thoughts');
      return sequence;
    });
    return await written.catch(() => undefined);
  }

  async #read(): Promise<void> {
    const last = await this.#storage.read((tx) =>
      tx.get<{ sequence: number; content: string }>(
        'SELECT sequence, content FROM things ORDER BY sequence DESC LIMIT 1',
      ),
    );
    if (last !== undefined) this.#learn(last.sequence, last.content);
  }

  #learn(sequence: number | undefined, content: string): void {
    if (this.#hasStopped || sequence === undefined) return;
    // No sequence is given twice with different contents.
    expect(this.#known.get(sequence) ?? content).toBe(content);
    this.#known.set(sequence, content);
  }
}

/** Opens a relay's database on a machine; it must not miss what it had. */
async function open(machine: Machine): Promise<SqliteStorage> {
  const faults: StorageFaults = { flush: () => machine.flush() };
  const wentBack = (transactions: number) => expect.fail(`went back ${transactions}`);
  const storage = openSqlite(machine.folder, faults, { ...silentObserver, wentBack });
  // The checkpoints are the machine's.
  await storage.write('relay', (tx) => tx.get('PRAGMA wal_autocheckpoint=0'));
  machine.settle();
  return storage;
}

/** Checks what is left on a machine. */
async function check(storage: SqliteStorage, known: Known): Promise<void> {
  const rows = await storage.read((tx) => tx.all('SELECT sequence, content FROM things'));
  const stored = new Map(rows.map(({ sequence, content }) => [sequence, content]));
  for (const [sequence, content] of known) expect(stored.get(sequence)).toBe(content);
  const found = await storage.read((tx) => tx.get('PRAGMA integrity_check'));
  expect(found).toEqual({ integrity_check: 'ok' });
}

/**
 * Checks what is left on a machine and lets clients write there until its power is cut; `next` gets
 * what is left then.
 */
async function writeUntilCut(
  machine: Machine,
  next: Machine,
  { chance, known }: { readonly chance: () => number; readonly known: Known },
): Promise<void> {
  await using storage = await open(machine);
  await check(storage, known);
  const client = new Client(storage, chance, known);
  const running = Promise.all([client.write(), client.write(), client.read()]);
  for (let turns = 5 + chance() * 60; turns > 0; turns -= 1) {
    await nextTurn();
    if (chance() < 0.08) machine.checkpoint(false);
  }
  if (chance() < 0.3) machine.checkpoint(true);
  machine.cutTo(next);
  client.stop();
  await running;
}

/** Makes an empty database. */
async function template(): Promise<Buffer> {
  using folder = temporaryFolder();
  await using storage = openSqlite(folder.path);
  await storage.write('relay', async (tx) => {
    await tx.run('CREATE TABLE heads (head BIGINT NOT NULL)');
    await tx.run('INSERT INTO heads VALUES (0)');
    await tx.run('CREATE TABLE things (sequence BIGINT PRIMARY KEY, content TEXT NOT NULL)');
  });
  await storage[Symbol.asyncDispose]();
  return readFileSync(join(folder.path, 'relay.sqlite'));
}

test('after each power cut, what was answered or read is stored, once, and the database is whole', {
  timeout: 120_000,
}, async () => {
  const empty = await template();
  let answered = 0;
  const [first, last] = seeds[share];
  for (let seed = first; seed <= last; seed += 1) {
    const chance = chanceOf(seed);
    const known: Known = new Map();
    using machines = new DisposableStack();
    let machine = machines.use(new Machine(chance, empty));
    for (let cut = 1; cut <= cuts; cut += 1) {
      const next = machines.use(new Machine(chance));
      try {
        await writeUntilCut(machine, next, { chance, known });
      } catch (error) {
        throw new Error(`seed ${seed}, cut ${cut}`, { cause: error });
      }
      machine = next;
    }
    await using storage = await open(machine);
    await check(storage, known);
    answered += known.size;
  }
  expect(answered).toBeGreaterThan((last - first + 1) * cuts * 5);
});
