/**
 * Copies a relay's whole state from one database to another, then puts the copy into service.
 *
 * Rows are copied in key order, in atomic batches, so that an interrupted move continues after the
 * target's last key. plan.ts describes the marks of both databases.
 */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../clock.ts';
import { migrate, migrationsTable, pendingMigrations, readApplied } from '../migrations.ts';
import type { Migration, Reader, StorageFaults, Writer } from '../types.ts';
import {
  type DatabaseAddress,
  type MoveDatabase,
  MoveError,
  naming,
  openExclusive,
} from './databases.ts';
import {
  changeMark,
  expectMark,
  MarkChanged,
  type MoveMark,
  markRefusal,
  moveTable,
} from './mark.ts';
import { type DatabaseState, inspect, plan } from './plan.ts';
import { replaceMark } from './replace-mark.ts';
import {
  countRows,
  deleteBatch,
  digestTable,
  highestKey,
  insertRows,
  type Key,
  readBatch,
  readTables,
  type Table,
  type TableDigest,
} from './rows.ts';

export interface MoveOptions {
  readonly from: DatabaseAddress;
  readonly to: DatabaseAddress;
  /** Every migration of the relay. */
  readonly migrations: readonly Migration[];
  /** Whether the target may be emptied if it is the old copy of an earlier move. */
  readonly replace?: boolean | undefined;
  /** Stops between two batches; the same move can be run again. */
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((progress: MoveProgress) => void) | undefined;
  /** Faults for tests. */
  readonly faults?: { readonly source?: StorageFaults; readonly target?: StorageFaults };
}

interface MoveProgress {
  readonly step: 'emptying' | 'copying' | 'checking';
  readonly table: string;
  readonly rows: number;
  readonly total: number;
}

/** The digests of a table in both databases, after all rows were copied. */
export interface MovedTable {
  readonly table: string;
  readonly source: TableDigest;
  readonly target: TableDigest;
}

export interface MoveResult {
  /**
   * - `moved`: the target is now the relay's database;
   * - `moved before`: this same move was complete already; nothing was read;
   * - `differs`: a table differs between the databases, and neither lets a relay run.
   */
  readonly state: 'moved' | 'moved before' | 'differs';
  readonly relayId: string;
  readonly tables: readonly MovedTable[];
}

export { type DatabaseAddress, DatabaseAddressError, parseAddress } from './databases.ts';

/**
 * Moves a relay's state, or continues an interrupted move.
 *
 * @throws MoveError with what to do, if a database cannot be used; the reason of `signal`
 * @example
 * const [from, to] = [parseAddress('sqlite:/var/lib/posthouse'), parseAddress(url)];
 * const { state } = await moveStorage({ from, to, migrations: relayMigrations });
 */
export async function moveStorage(options: MoveOptions): Promise<MoveResult> {
  await using source = await openExclusive(options.from, {
    mustExist: true,
    faults: options.faults?.source,
    lacking: 'refuse',
  });
  await using target = await openExclusive(options.to, {
    mustExist: false,
    faults: options.faults?.target,
  });
  const found = { source: await inspect(source), target: await inspect(target) };
  const relayId = await checkSource(source, found.source, options.migrations);
  const marks = plan(found.source, found.target, {
    moveId: randomUUID(),
    replace: options.replace ?? false,
  });
  if (marks === undefined) return { state: 'moved before', relayId, tables: [] };
  const tables = await sameTables(source, target, options.migrations);
  await replaceMark(source, found.source.mark, marks.source);
  const move = new Move({ source, target, tables, options }, marks);
  try {
    target.forgetLacking();
    await markTarget(source, target, { from: found.target.mark, to: marks.target });
    return { relayId, ...(await move.run()) };
  } catch (error) {
    const isInterrupted = error instanceof MoveError && !(error.cause instanceof MarkChanged);
    throw isInterrupted ? new InterruptedMove(error) : error;
  }
}

/** A move that failed after it was begun: it can be run again. */
class InterruptedMove extends Error {
  override readonly name = 'InterruptedMove';

  constructor(cause: MoveError) {
    super(`${cause.message}. ${goingOn}`, { cause });
  }
}

const goingOn =
  'The move is not complete, and nothing is lost: run the same command again to go on, or with ' +
  '--abandon to give the move up';

/** @returns the relay's ID */
async function checkSource(
  source: MoveDatabase,
  { identity, mark }: DatabaseState,
  migrations: readonly Migration[],
): Promise<string> {
  return await naming(source, async () => {
    const relayId = identity.get('relay');
    if (relayId === undefined) {
      throw new Error(markRefusal(mark) ?? 'no relay was ever started on it: check --from');
    }
    const pending = await pendingMigrations(source.storage, migrations);
    if (pending.length === 0) return relayId;
    throw new Error('is of an older version: start this version of the relay on it once, first');
  });
}

/** Migrates the target to the source's schema, and returns the tables of both. */
async function sameTables(
  source: MoveDatabase,
  target: MoveDatabase,
  migrations: readonly Migration[],
): Promise<Table[]> {
  await naming(target, () => migrate(target.storage, migrations, systemClock.now()));
  const sourceTables = await naming(source, () => readTables(source.storage));
  const targetTables = await naming(target, () => readTables(target.storage));
  for (const [database, own, others] of [
    [source, sourceTables, targetTables],
    [target, targetTables, sourceTables],
  ] as const) {
    const known = new Set(others.map((table) => JSON.stringify(table)));
    const unknown = own.find(
      (table) => !known.has(JSON.stringify(table)) || table.key.length === 0,
    );
    if (unknown === undefined) continue;
    throw new MoveError(
      database.name,
      new Error(`the table ${unknown.name} is not one of a relay's: remove it`),
    );
  }
  return sourceTables.filter((table) => table.name !== moveTable);
}

/** Marks the target, and copies the source's migration times, which are part of the state. */
async function markTarget(
  source: MoveDatabase,
  target: MoveDatabase,
  { from, to }: { readonly from: MoveMark | undefined; readonly to: MoveMark },
): Promise<void> {
  const applied = await naming(source, () => source.storage.read((tx) => readApplied(tx)));
  await naming(target, () =>
    target.storage.write('relay', async (tx) => {
      await changeMark(tx, from, to);
      for (const { id, applied_at } of applied) {
        await tx.run(`UPDATE ${migrationsTable} SET applied_at = ? WHERE id = ?`, applied_at, id);
      }
    }),
  );
}

interface MoveParts {
  readonly source: MoveDatabase;
  readonly target: MoveDatabase;
  readonly tables: readonly Table[];
  readonly options: MoveOptions;
}

type Side = 'source' | 'target';

/** A move whose databases are marked. */
class Move {
  readonly #source: MoveDatabase;
  readonly #target: MoveDatabase;
  readonly #tables: readonly Table[];
  readonly #options: MoveOptions;
  readonly #sourceMark: MoveMark;
  #targetMark: MoveMark;

  constructor(
    { source, target, tables, options }: MoveParts,
    marks: { readonly source: MoveMark; readonly target: MoveMark },
  ) {
    this.#source = source;
    this.#target = target;
    this.#tables = tables;
    this.#options = options;
    this.#sourceMark = marks.source;
    this.#targetMark = marks.target;
  }

  async run(): Promise<Pick<MoveResult, 'state' | 'tables'>> {
    if (this.#targetMark.state === 'emptying') await this.#emptyTarget();
    for (const table of this.#tables) await this.#copy(table);
    const tables: MovedTable[] = [];
    for (const table of this.#tables) tables.push(await this.#compare(table));
    if (tables.some(differs)) return { state: 'differs', tables };
    await this.#handOver();
    return { state: 'moved', tables };
  }

  async #emptyTarget(): Promise<void> {
    for (const table of this.#tables) {
      // Its rows describe the existing schema.
      if (table.name !== migrationsTable) await this.#empty(table);
    }
    const arriving: MoveMark = { ...this.#targetMark, state: 'arriving' };
    await replaceMark(this.#target, this.#targetMark, arriving);
    this.#targetMark = arriving;
  }

  async #empty(table: Table): Promise<void> {
    const target = this.#table('target', table);
    const of = await target.read((tx) => countRows(tx, table));
    let rows = 0;
    let after: Key | undefined;
    do {
      const { deleted, last } = await target.write((tx) => deleteBatch(tx, table, after));
      rows += deleted;
      after = last;
      this.#options.progress?.({ step: 'emptying', table: table.name, rows, total: of });
    } while (after !== undefined);
  }

  async #copy(table: Table): Promise<void> {
    const source = this.#table('source', table);
    const target = this.#table('target', table);
    const of = await source.read((tx) => countRows(tx, table));
    let rows = await target.read((tx) => countRows(tx, table));
    let after = await target.read((tx) => highestKey(tx, table));
    for (;;) {
      const batch = await source.read((tx) => readBatch(tx, table, after));
      if (batch.last !== undefined) {
        await target.write((tx) => insertRows(tx, table, batch.rows));
        rows += batch.rows.length;
        after = batch.last;
      }
      this.#options.progress?.({ step: 'copying', table: table.name, rows, total: of });
      if (batch.last === undefined) return;
    }
  }

  async #compare(table: Table): Promise<MovedTable> {
    const of = await this.#table('source', table).read((tx) => countRows(tx, table));
    const seen = { source: 0, target: 0 };
    const digest = async (side: Side) =>
      await this.#digest(side, table, (read) => {
        seen[side] = read;
        const rows = Math.min(seen.source, seen.target);
        this.#options.progress?.({ step: 'checking', table: table.name, rows, total: of });
      });
    const [source, target] = await Promise.all([digest('source'), digest('target')]);
    return { table: table.name, source, target };
  }

  async #digest(side: Side, table: Table, progress: (rows: number) => void): Promise<TableDigest> {
    const { name, read } = this.#table(side, table);
    const digest = await digestTable(table, read, progress);
    const counted = await read((tx) => countRows(tx, table));
    if (counted === digest.rows) return digest;
    throw new MoveError(name, new Error(`${counted} rows, but only ${digest.rows} with a key`));
  }

  /** Takes the source out of service before the target goes into service. */
  async #handOver(): Promise<void> {
    this.#checkAlone();
    await replaceMark(this.#source, this.#sourceMark, { ...this.#sourceMark, state: 'moved' });
    this.#checkAlone();
    await replaceMark(this.#target, this.#targetMark, { ...this.#targetMark, state: 'arrived' });
  }

  /** Returns access to a table of one database that first checks its mark and exclusive lock. */
  #table(side: Side, table: Table) {
    const { storage, ...end } = side === 'source' ? this.#source : this.#target;
    const name = `${end.name}, table ${table.name}`;
    const expect = (tx: Reader) =>
      expectMark(tx, side === 'source' ? this.#sourceMark : this.#targetMark);
    return {
      name,
      read: async <T>(work: (tx: Reader) => Promise<T>): Promise<T> => {
        this.#checkAlone();
        return await naming({ name }, () =>
          storage.read(async (tx) => {
            await expect(tx);
            return await work(tx);
          }),
        );
      },
      write: async <T>(work: (tx: Writer) => Promise<T>): Promise<T> => {
        this.#checkAlone();
        return await naming({ name }, () =>
          storage.write('relay', async (tx) => {
            await expect(tx);
            return await work(tx);
          }),
        );
      },
    };
  }

  #checkAlone(): void {
    this.#options.signal?.throwIfAborted();
    this.#source.checkExclusive();
    this.#target.checkExclusive();
  }
}

/** Returns whether a table differs between the two databases. */
export function differs({ source, target }: MovedTable): boolean {
  return source.rows !== target.rows || source.digest !== target.digest;
}
