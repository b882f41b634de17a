/** Plans of a batch's statements, as the sessions of the engine make them (decision record 0027). */
import { migrate } from '../../src/storage/migrations.ts';
import { clientConfig, PostgresClient, prepareSession } from '../../src/storage/postgres/client.ts';
import { PostgresStatements } from '../../src/storage/postgres/sql.ts';
import { defaultTimeouts } from '../../src/storage/postgres/timeouts.ts';
import type { BatchWriter, Migration, Row, Writer } from '../../src/storage/types.ts';
import { ask, open } from '../support/postgres-engine.ts';
import { slowSteps } from './plan-steps.ts';

/** A statement of a batch with its values. */
type Recorded = readonly [text: string, values: unknown[]];

/** A batch, and what is stored before it. */
interface Planned {
  readonly migrations: readonly Migration[];
  readonly fill: (tx: Writer) => Promise<void>;
  readonly write: (tx: BatchWriter) => Promise<unknown>;
}

/** A database whose tables grow, with a session of the engine. */
export class BatchPlans implements AsyncDisposable {
  readonly #url: string;
  readonly #client: PostgresClient;

  private constructor(url: string, client: PostgresClient) {
    this.#url = url;
    this.#client = client;
  }

  static async start(
    url: string,
    { migrations, fill }: Pick<Planned, 'migrations' | 'fill'>,
  ): Promise<BatchPlans> {
    await using storage = await open(url);
    await migrate(storage, migrations, 0);
    await storage.write('relay', fill);
    const client = new PostgresClient(clientConfig(url, defaultTimeouts));
    await client.connect();
    await prepareSession(client, defaultTimeouts);
    return new BatchPlans(url, client);
  }

  /** Runs a batch, undoes it, and returns its statements. */
  async record(write: Planned['write']): Promise<readonly Recorded[]> {
    const recorded: Recorded[] = [];
    const known = new PostgresStatements();
    const query = async (sql: string, values: unknown[]) => {
      const { text } = known.of(sql);
      recorded.push([text, values]);
      return await this.#client.query(text, values);
    };
    await this.#client.query('BEGIN READ WRITE');
    await write({
      all: async <T extends Row>(sql: string, ...values: unknown[]) =>
        (await query(sql, values)).rows as T[],
      run: async (sql, ...values) => (await query(sql, values)).rowCount ?? 0,
    });
    await this.#client.query('ROLLBACK');
    return recorded;
  }

  /** Returns the statements whose plans look at more rows than they are about, and these steps. */
  async slow(recorded: readonly Recorded[]): Promise<Record<string, string[]>> {
    const found: Record<string, string[]> = {};
    for (const [text, values] of recorded) {
      const { rows } = await this.#client.query(`EXPLAIN (FORMAT JSON) ${text}`, values);
      const steps = slowSteps(rows[0]['QUERY PLAN'][0].Plan);
      if (steps.length > 0) found[text] = steps;
    }
    return found;
  }

  async count(): Promise<void> {
    await ask(this.#url, 'ANALYZE');
  }

  /** Adds 20,000 rows to each table of these statements. */
  async grow(recorded: readonly Recorded[]): Promise<void> {
    await fillTables(this.#url, {
      isAsked: (table) => recorded.some(([text]) => text.includes(table)),
      fixed: () => undefined,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client.close(defaultTimeouts.close);
  }
}

/**
 * Inserts 20,000 rows into tables of the relay, as unlike each other as their names. The tables lose
 * their own rules.
 *
 * @param of.fixed SQL of columns whose values many rows have in common
 */
export async function fillTables(
  url: string,
  {
    isAsked,
    fixed,
  }: {
    readonly isAsked: (table: string) => boolean;
    readonly fixed: (of: { readonly table: string; readonly column: string }) => string | undefined;
  },
): Promise<void> {
  const rules = await ask<{ table: string; name: string }>(
    url,
    `SELECT conrelid::regclass::text AS table, conname AS name FROM pg_constraint
      WHERE contype = 'c' AND connamespace = 'public'::regnamespace`,
  );
  for (const { table, name } of rules) {
    await ask(url, `ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
  }
  const columns = await ask<{ table: string; column: string; type: string }>(
    url,
    `SELECT table_name AS table, column_name AS column, data_type AS type
      FROM information_schema.columns WHERE table_schema = 'public'`,
  );
  for (const [table, its] of Map.groupBy(columns, (row) => row.table)) {
    if (/^(?:posthouse|schema)_/.test(table) || !isAsked(table)) continue;
    const values = its.map(
      (row) => fixed(row) ?? (row.type === 'bigint' ? 'n' : `md5(n::text || '${row.column}')`),
    );
    await ask(
      url,
      `INSERT INTO ${table} (${its.map(({ column }) => `"${column}"`)})
        SELECT ${values} FROM generate_series(1, 20000) AS n ON CONFLICT DO NOTHING`,
    );
  }
}
