/**
 * PostgreSQL and SQLite with the same tables and rows: what the single form of an append stores on
 * SQLite, one by one, is what a batch must store on PostgreSQL (decision record 0027).
 */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { migrate, migrationsTable } from '../../src/storage/migrations.ts';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import type { AppendKind, Migration, Storage, Writer } from '../../src/storage/types.ts';
import { seed } from '../support/chance.ts';
import { dump } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';
import { TestPostgres } from '../support/postgres.ts';
import { open } from '../support/postgres-engine.ts';
import { BatchPlans } from './batch-plans.ts';

interface Parts {
  readonly modules: readonly { readonly migrations: readonly Migration[] }[];
  /** Writes what is stored before each test. */
  readonly fill: (tx: Writer) => Promise<void>;
}

export class EnginePair<Input, Output> {
  readonly #kind: AppendKind<Input, Output>;
  readonly #parts: Parts;
  readonly #opened = new AsyncDisposableStack();
  #server!: TestPostgres;
  #tables: string[] = [];
  url = '';
  postgres!: PostgresStorage;
  sqlite!: Storage;

  /** Starts both before the tests of a file, and fills them anew before each. */
  constructor(kind: AppendKind<Input, Output>, parts: Parts) {
    this.#kind = kind;
    this.#parts = parts;
    beforeAll(() => this.#start());
    afterAll(() => this.#opened[Symbol.asyncDispose]());
    beforeEach(async () => {
      this.postgres = await open(this.url);
      await this.reset();
      return () => this.postgres[Symbol.asyncDispose]();
    });
  }

  async #start(): Promise<void> {
    this.#server = this.#opened.use(await TestPostgres.start({ durable: false }));
    this.url = await this.#server.createDatabase();
    const folder = this.#opened.use(temporaryFolder());
    this.sqlite = this.#opened.use(openSqlite(folder.path));
    const migrations = this.#parts.modules.flatMap((module) => module.migrations);
    await using first = await open(this.url);
    for (const storage of [first, this.sqlite]) await migrate(storage, migrations, 0);
    this.#tables = Object.keys(await this.rows(first));
  }

  /** Removes all rows, and writes those that are there before each test. */
  async reset(): Promise<void> {
    for (const storage of [this.postgres, this.sqlite]) {
      await storage.write('relay', async (tx) => {
        for (const table of this.#tables) await tx.run(`DELETE FROM ${table}`);
        await this.#parts.fill(tx);
      });
    }
  }

  /** Appends all at once. */
  append(
    inputs: readonly Input[],
    to: Storage = this.postgres,
  ): Promise<readonly (Output | undefined)[]> {
    return Promise.all(inputs.map((input) => to.append(this.#kind, input)));
  }

  /** Requires the same outputs, and returns them. */
  async appendAlike(inputs: readonly Input[]): Promise<readonly (Output | undefined)[]> {
    const outputs = await this.append(inputs);
    expect(outputs).toEqual(await this.append(inputs, this.sqlite));
    return outputs;
  }

  /**
   * Requires that batches of random inputs store and answer on PostgreSQL what each input alone does
   * on SQLite.
   *
   * @param parts.before statements that change what is stored first, or empty texts
   */
  async expectBatchesAlike(parts: {
    readonly before: fc.Arbitrary<string>;
    readonly inputs: fc.Arbitrary<Input>;
  }): Promise<void> {
    const batch = fc.array(parts.inputs, { minLength: 10, maxLength: 40 });
    const batches = fc.array(batch, { minLength: 1, maxLength: 3 });
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(parts.before, batches, async (sql, all) => {
        await this.reset();
        for (const storage of [this.postgres, this.sqlite]) {
          if (sql !== '') await storage.write('relay', (tx) => tx.run(sql));
        }
        for (const inputs of all) {
          const outputs = await this.appendAlike(inputs);
          accepted += outputs.filter((output) => output !== undefined).length;
        }
        await this.expectSameRows();
      }),
      { seed, numRuns: 40, endOnFailure: true },
    );
    expect(accepted).toBeGreaterThan(100);
  }

  /**
   * Requires that no statement of a batch, of 1 input and of 128, looks at more rows than it is about:
   * whatever the tables hold, and whenever they were counted.
   */
  async expectPlansWithIndexes(input: (position: number) => Input): Promise<void> {
    const { batch } = this.#kind;
    const migrations = this.#parts.modules.flatMap((module) => module.migrations);
    const url = await this.#server.createDatabase();
    await using plans = await BatchPlans.start(url, { migrations, fill: this.#parts.fill });
    const recorded = [];
    for (const length of [1, 128]) {
      const inputs = Array.from({ length }, (_, position) => input(position));
      recorded.push(...(await plans.record(async (tx) => batch?.write(tx, inputs, () => {}))));
    }
    expect(recorded.length).toBeGreaterThan(8);
    expect(await plans.slow(recorded), 'never counted').toEqual({});
    await plans.count();
    // An UPDATE finds its rows by a join, of which every way costs nothing in a small table. Such a plan
    // lasts until the table is counted again.
    const others = recorded.filter(([text]) => !text.startsWith('UPDATE'));
    expect(await plans.slow(others), 'counted when small').toEqual({});
    await plans.grow(recorded);
    expect(await plans.slow(recorded), 'grown since').toEqual({});
    await plans.count();
    expect(await plans.slow(recorded), 'counted').toEqual({});
  }

  async expectSameRows(): Promise<void> {
    expect(await this.rows(this.postgres)).toEqual(await this.rows(this.sqlite));
  }

  async rows(of: Storage = this.postgres): Promise<Record<string, readonly object[]>> {
    const { [migrationsTable]: _, ...rows } = await dump(of);
    return rows;
  }
}
