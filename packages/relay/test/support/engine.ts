/**
 * The storage engine that this run of a test is about: the one place that knows. Tests of what a
 * relay stores run once per engine; `vitest.config.ts` says which those are.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { PartialConfig, RelayConfig } from '../../src/config/index.ts';
import { openStorage } from '../../src/storage/open.ts';
import type { Reader, Row, Storage, StorageFaults } from '../../src/storage/types.ts';
import { checkFactWrites } from './fact-writes.ts';
import { temporaryFolder } from './folder.ts';
import { PostgresDatabases } from './postgres.ts';
import { silentObserver } from './silent-observer.ts';

declare module 'vitest' {
  interface ProvidedContext {
    engine: 'sqlite' | 'postgres';
    /** A server for the run's databases; there with the engine `postgres`. */
    postgres: string;
    /** A database with the relay's schema, to be copied: its name there, or a file of SQLite. */
    template: string;
    /** `away` if people declared at a relay are at home at another one. */
    callers: 'away';
  }
}

/** `undefined` in tests that run once, whatever the engine is. */
export const engine: 'sqlite' | 'postgres' | undefined = inject('engine');

/** The error of a second relay on the same data. */
export const inUse =
  engine === 'postgres'
    ? /another relay process uses the database/
    : /is in use by another relay process: stop it first$/;

/**
 * What outlives a relay's process: its data folder and, if the engine has it elsewhere, a
 * database. Both are of this test alone and go with it.
 *
 * @example
 * await using data = await RelayData.empty();
 * await using storage = await data.open();
 * await using relay = await Relay.start({ ...data.config, dev: true }); // or a whole relay
 */
export class RelayData implements AsyncDisposable {
  readonly #folder: ReturnType<typeof temporaryFolder>;
  readonly #storage: RelayConfig['storage'];
  readonly #hasSchema: boolean;
  readonly #broken: Error[] = [];

  private constructor(url: string, hasSchema: boolean) {
    if (engine === undefined) {
      throw new Error('a test that stores something needs an engine: see vitest.config.ts');
    }
    this.#folder = temporaryFolder();
    this.#storage = { engine, url, connections: 10 };
    this.#hasSchema = hasSchema;
  }

  /** Makes an empty database. */
  static async empty(): Promise<RelayData> {
    return new RelayData(engine === 'postgres' ? await server().create() : '', false);
  }

  /**
   * Makes a database with the relay's schema and no rows, which is faster than migrations. A test
   * that changes the schema starts from {@link empty}: PostgreSQL databases are used again.
   */
  static async withSchema(): Promise<RelayData> {
    if (engine === 'postgres') return new RelayData(await server().withSchema(), true);
    const data = new RelayData('', true);
    copyFileSync(inject('template'), join(data.path, 'relay.sqlite'));
    return data;
  }

  /** The data folder. */
  get path(): string {
    return this.#folder.path;
  }

  /** What a relay's configuration says of it. */
  get config(): {
    readonly data: string;
    readonly storage: RelayConfig['storage'];
  } & PartialConfig {
    return { data: this.path, storage: this.#storage };
  }

  /** Environment variables with the database's address, for a relay in a process of its own. */
  get environment(): Record<string, string> {
    const { engine, url } = this.#storage;
    return { POSTHOUSE_STORAGE_ENGINE: engine, ...(url !== '' && { POSTHOUSE_STORAGE_URL: url }) };
  }

  /** Opens it; a write that changes facts of an account which it does not name is rejected. */
  async open(faults: StorageFaults = {}): Promise<Storage> {
    const parts = { faults, observer: silentObserver };
    const storage = await openStorage({ ...this.config, bus: { nats: '' } }, parts);
    return checkFactWrites(storage, this.#broken);
  }

  /** @throws the first write that broke the rule of facts, also if a job caught it */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#folder[Symbol.dispose]();
    const { engine, url } = this.#storage;
    if (engine === 'postgres') {
      if (this.#hasSchema) await server().release(url);
      else await server().drop(url);
    }
    if (this.#broken.length > 0) throw this.#broken[0];
  }
}

let postgres: PostgresDatabases | undefined;

function server(): PostgresDatabases {
  postgres ??= new PostgresDatabases(inject('postgres'), inject('template'));
  return postgres;
}

/** The columns of each table. */
type Tables = ReadonlyMap<string, readonly string[]>;

const tablesOf = new WeakMap<Storage, Promise<Tables>>();

/** Reads the tables of a database, once: its schema is complete. */
async function readTables(storage: Storage): Promise<Tables> {
  const columns = await storage.read((tx) =>
    tx.all<{ table_name: string; column_name: string }>(storage.catalogueSql),
  );
  const byTable = Map.groupBy(columns, ({ table_name }) => table_name);
  return new Map([...byTable].map(([name, of]) => [name, of.map((row) => row.column_name)]));
}

async function withTables<T>(
  storage: Storage,
  work: (tx: Reader, tables: Tables) => Promise<T>,
): Promise<T> {
  const known = tablesOf.get(storage) ?? readTables(storage);
  tablesOf.set(storage, known);
  const tables = await known;
  return await storage.read((tx) => work(tx, tables));
}

const rowsSql = (table: string, tables: Tables) =>
  `SELECT * FROM ${table} ORDER BY ${tables.get(table)?.join(', ')}`;

/** Reads every row of every table, in the order of their columns, to compare before and after. */
export async function dump(storage: Storage): Promise<Record<string, Row[]>> {
  return await withTables(storage, async (tx, tables) => {
    const names = [...tables.keys()];
    if (names.length === 0) return {};
    // Most tables are empty in most tests.
    const filled = await tx.all<{ name: string }>(
      names
        .map((name) => `SELECT '${name}' AS name WHERE EXISTS (SELECT 1 FROM ${name})`)
        .join(' UNION ALL '),
    );
    const all: Record<string, Row[]> = Object.fromEntries(names.map((name) => [name, []]));
    for (const { name } of filled) all[name] = await tx.all(rowsSql(name, tables));
    return all;
  });
}

/** Reads every row of a table, in the order of its columns. */
export async function rowsOf(storage: Storage, table: string): Promise<Row[]> {
  return await withTables(storage, (tx, tables) => tx.all(rowsSql(table, tables)));
}

/** What of a statement's plan reads a whole table or sorts. */
export async function scansAndSorts(storage: Storage, sql: string): Promise<string[]> {
  const blanks = [...sql.matchAll(/\?(::\w+\[\])?/g)].map(([, list]) => (list ? '{}' : 0));
  return await storage.read(async (tx) => {
    if (engine === 'sqlite') {
      const plan = await tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...blanks);
      const details = plan.map(({ detail }) => detail);
      // A list of a statement's own is read whole.
      return details.filter((detail) =>
        /TEMP B-TREE|^SCAN (?!counted_mail|deadlines|lanes|some_invites|CONSTANT)(?!.*USING (?:COVERING )?INDEX)/.test(
          detail,
        ),
      );
    }
    // Nothing pays in an empty table: what is still there then has no other way.
    for (const way of ['seqscan', 'bitmapscan', 'sort']) {
      await tx.get(`SELECT set_config('enable_${way}', 'off', true)`);
    }
    const plan = await tx.all<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql}`, ...blanks);
    return plan.map((row) => row['QUERY PLAN']).filter((line) => /Seq Scan|Sort/.test(line));
  });
}
