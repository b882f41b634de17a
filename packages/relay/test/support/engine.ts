/**
 * The storage engine that this run of a test is about: the one place that knows. Tests of what a
 * relay stores run once per engine; `vitest.config.ts` says which those are.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { PartialConfig, RelayConfig } from '../../src/config/index.ts';
import { openStorage } from '../../src/storage/open.ts';
import type { Storage, StorageFaults } from '../../src/storage/types.ts';
import { temporaryFolder } from './folder.ts';
import { PostgresDatabases } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    engine: 'sqlite' | 'postgres';
    /** A server for the run's databases; there with the engine `postgres`. */
    postgres: string;
    /** What has the relay's schema to be copied: a database's name there, or a file of SQLite. */
    furnished: string;
  }
}

/** `undefined` in tests that run once, whatever the engine is. */
export const engine: 'sqlite' | 'postgres' | undefined = inject('engine');

/** What a second relay on the same data is told. */
export const inUse =
  engine === 'postgres'
    ? /another relay process uses the database/
    : /is in use by another relay process$/;

const observer = { lost() {}, restored() {}, conflicted() {}, commitUnknown() {}, lockLost() {} };

/**
 * What outlives a relay's process: its data folder and, where the engine has it elsewhere, a
 * database. Both are of this test alone and go with it.
 *
 * @example
 * await using data = await RelayData.make();
 * await using storage = await data.open();
 * await using relay = await Relay.start({ ...data.config, dev: true }); // or a whole relay
 */
export class RelayData implements AsyncDisposable {
  readonly #folder: ReturnType<typeof temporaryFolder>;
  readonly #storage: RelayConfig['storage'];

  private constructor(folder: ReturnType<typeof temporaryFolder>, storage: RelayConfig['storage']) {
    this.#folder = folder;
    this.#storage = storage;
  }

  /** With an empty database. */
  static async make(): Promise<RelayData> {
    return await RelayData.#make();
  }

  /** With the relay's schema, as migrations made it: sooner than {@link make} and a start. */
  static async furnished(): Promise<RelayData> {
    return await RelayData.#make(inject('furnished'));
  }

  static async #make(like?: string): Promise<RelayData> {
    if (engine === undefined) {
      throw new Error('a test that stores something runs once per engine: see vitest.config.ts');
    }
    const folder = temporaryFolder();
    if (engine === 'sqlite') {
      if (like !== undefined) copyFileSync(like, join(folder.path, 'relay.sqlite'));
      return new RelayData(folder, { engine, url: '', connections: 10 });
    }
    const url = await server().create(ownName(), like);
    return new RelayData(folder, { engine, url, connections: 10 });
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

  /** What says where the database is to a relay with a process of its own. */
  get environment(): Record<string, string> {
    const { engine, url } = this.#storage;
    return { POSTHOUSE_STORAGE_ENGINE: engine, ...(url !== '' && { POSTHOUSE_STORAGE_URL: url }) };
  }

  open(faults: StorageFaults = {}): Promise<Storage> {
    return openStorage({ ...this.config, bus: { nats: '' } }, { faults, observer });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#folder[Symbol.dispose]();
    if (this.#storage.engine === 'postgres') await server().drop(this.#storage.url);
  }
}

let postgres: PostgresDatabases | undefined;

function server(): PostgresDatabases {
  postgres ??= new PostgresDatabases(inject('postgres'));
  return postgres;
}

let databases = 0;

/** Every test file has a process of its own, for a while. */
function ownName(): string {
  databases += 1;
  return `test_${crypto.randomUUID().slice(0, 8)}_${databases}`;
}

/** Every row of every table, in the order of their keys, to compare before and after. */
export async function dump(storage: Storage): Promise<Record<string, unknown[]>> {
  return await storage.read(async (tx) => {
    const columns = await tx.all<{
      table_name: string;
      column_name: string;
      key_position: number;
    }>(storage.catalogueSql);
    const rows: Record<string, unknown[]> = {};
    for (const [table, of] of Map.groupBy(columns, ({ table_name }) => table_name)) {
      const order = of.map(({ column_name }) => column_name).join(', ');
      rows[table] = await tx.all(`SELECT * FROM ${table} ORDER BY ${order}`);
    }
    return rows;
  });
}

/** What of a statement's plan reads a whole table or sorts. */
export async function detours(storage: Storage, sql: string): Promise<string[]> {
  const blanks = [...sql.matchAll(/\?/g)].map(() => 0);
  return await storage.read(async (tx) => {
    if (engine === 'sqlite') {
      const plan = await tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...blanks);
      const details = plan.map(({ detail }) => detail);
      // A list of a statement's own is read whole.
      return details.filter((detail) =>
        /TEMP B-TREE|^SCAN (?!deadlines|some_invites|CONSTANT)(?!.*USING (?:COVERING )?INDEX)/.test(
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
