import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accounts } from '../../src/accounts/index.ts';
import { auth } from '../../src/auth/index.ts';
import { groups } from '../../src/groups/index.ts';
import { messages } from '../../src/messages/index.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { clientConfig, PostgresClient, prepareSession } from '../../src/storage/postgres/client.ts';
import { PostgresStatements } from '../../src/storage/postgres/sql.ts';
import { defaultTimeouts } from '../../src/storage/postgres/timeouts.ts';
import { TestPostgres } from '../support/postgres.ts';
import { ask, open } from '../support/postgres-engine.ts';
import { fillTables } from './batch-plans.ts';
import { slowSteps } from './plan-steps.ts';

const subjects = { accounts, auth, messages };

/** Sorts the relays that ask about one device, of which there are few, to drop the last ones. */
const sortsFew =
  /^DELETE FROM status_watchers WHERE account = \? AND device_id = \? AND relay_id IN/;

/** Every statement in the sources of the subjects, lists of values shortened to two. */
function statements(): string[] {
  const folder = fileURLToPath(new URL('../../src/', import.meta.url));
  const files = globSync(`{${Object.keys(subjects)}}/**/*.ts`, {
    cwd: folder,
    // The operator's command `posthouse peers` counts the whole queue; no call and no job does. A
    // migration runs once, over whole tables, and so does what follows a restore.
    exclude: ['messages/waiting-mail.ts', '*/migrations.ts', '*/restored.ts'],
  });
  const sources = files.map((file) => readFileSync(`${folder}${file}`, 'utf8'));
  const all = sources.join('\n');
  return sources.flatMap((source) => statementsIn(source, all));
}

function statementsIn(source: string, all: string): string[] {
  const found = source.matchAll(
    /(['`])\s*((?:WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM) (?:(?!\1)[\s\S])*)\1/g,
  );
  return [...found].map(([, , sql = '']) =>
    sql
      .replaceAll(/\$\{placeholders\([^}]*\}/g, '?, ?')
      // Lists of columns that a file names once, and parts that files share; other parts are
      // conditions that may be absent.
      .replaceAll(
        /\$\{(\w+)\}/g,
        (_, name: string) =>
          constantIn(source, `const ${name}`) ?? constantIn(all, `export const ${name}`) ?? '',
      ),
  );
}

function constantIn(source: string, declared: string): string | undefined {
  return new RegExp(`^${declared} =\\s*(['\`])([^'\`]*)\\1`, 'm').exec(source)?.[2];
}

let server: TestPostgres;
let url: string;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
  url = await server.createDatabase();
  await using storage = await open(url);
  // Accounts ask for the groups that a device has access to.
  const migrations = Object.values({ ...subjects, groups }).flatMap(
    (subject) => subject.migrations,
  );
  await migrate(storage, migrations, 0);
  // Only the tests run ANALYZE.
  const tables = await storage.read((tx) => tx.all<{ table_name: string }>(storage.catalogueSql));
  for (const table of new Set(tables.map((row) => row.table_name))) {
    await ask(url, `ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  }
});
afterAll(() => server[Symbol.asyncDispose]());

/** Statements with what is wrong about their plans in a session of the engine. */
async function wrong(): Promise<Record<string, string[]>> {
  const client = new PostgresClient(clientConfig(url, defaultTimeouts));
  await client.connect();
  await prepareSession(client, defaultTimeouts);
  const known = new PostgresStatements();
  const found: Record<string, string[]> = {};
  for (const sql of statements()) {
    // Without values: the plan of the prepared statement.
    const { text } = known.of(sql);
    const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
    const slow = slowSteps(rows[0]['QUERY PLAN'][0].Plan);
    if (slow.length > 0 && !sortsFew.test(sql)) found[sql] = slow;
  }
  await client.close(defaultTimeouts.close);
  return found;
}

function fill(): Promise<void> {
  const text = statements().join(' ');
  return fillTables(url, {
    isAsked: (table) => text.includes(table),
    fixed({ table, column }) {
      if (column === 'status') return table === 'remote_devices' ? `'active'` : `'delivering'`;
      if (column === 'mode') return `'device'`;
      return column.startsWith('error_') ? 'NULL' : undefined;
    },
  });
}

describe('every statement of the stores uses an index', () => {
  test('all of them are looked at', () => {
    expect(statements().length).toBeGreaterThan(55);
  });

  test('in tables without statistics', async () => {
    expect(await wrong()).toEqual({});
  });

  test('in tables that were empty when they were counted, where it is about one table', async () => {
    await ask(url, 'ANALYZE');
    // Without rows every way of joining costs nothing. Such a plan lasts until the tables are
    // counted again, which growing makes the server do within a minute or two.
    const found = Object.entries(await wrong()).filter(([sql]) => !isAboutSeveral(sql));
    expect(found).toEqual([]);
  });

  test('in tables that have grown since', async () => {
    await fill();
    expect(await wrong()).toEqual({});
  });

  test('in large tables that were counted', async () => {
    await ask(url, 'ANALYZE');
    expect(await wrong()).toEqual({});
  });
});

test('a portion of what is due is read in its order, though nothing was due when it was counted', async () => {
  const database = await server.createDatabase();
  await ask(database, 'CREATE TABLE things (kind TEXT, id BIGINT PRIMARY KEY, due BIGINT)');
  await ask(database, 'CREATE INDEX things_due ON things (kind, due) WHERE due IS NOT NULL');
  await ask(
    database,
    `INSERT INTO things SELECT 'post', n, NULL FROM generate_series(1, 20000) AS n`,
  );
  await ask(database, 'ANALYZE things');
  await using client = new AsyncDisposableStack();
  const session = new PostgresClient(clientConfig(database, defaultTimeouts));
  client.defer(() => session.close(defaultTimeouts.close));
  await session.connect();
  await prepareSession(session, defaultTimeouts);
  const { rows } = await session.query(
    `EXPLAIN (GENERIC_PLAN, FORMAT JSON) SELECT id FROM things
      WHERE kind = $1 AND due IS NOT NULL AND due <= $2 ORDER BY due LIMIT $3`,
  );
  expect(slowSteps(rows[0]['QUERY PLAN'][0].Plan)).toEqual([]);
});

function isAboutSeveral(sql: string): boolean {
  return (sql.match(/(?:\b(?:FROM|JOIN)|^UPDATE) \w/g) ?? []).length > 1;
}
