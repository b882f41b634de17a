/** PostgreSQL databases that earlier relays wrote (storage/kept/README.md) start with the relay of today. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Client } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { relayMigrations } from '../../src/modules.ts';
import { Relay } from '../../src/relay.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { TestPostgres } from '../support/postgres.ts';

const kept = join(import.meta.dirname, '../storage/kept');
const form = /^postgres-(.+)\.sql\.gz$/;

let server: TestPostgres;
beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
});
afterAll(() => server[Symbol.asyncDispose]());

async function ask<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Number of rows of the tables that a kept database has filled, its migrations apart. */
async function rowsOf(client: Client, only?: readonly string[]): Promise<Record<string, number>> {
  const found = await client.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = 'public' ORDER BY table_name COLLATE "C"`,
  );
  const names = found.rows.map(({ name }) => name);
  const counts: [string, number][] = [];
  for (const name of only ??
    names.filter((one) => /^(account|device|message|timeline|group|channel)/.test(one))) {
    const { rows } = await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${name}`);
    counts.push([name, rows[0]?.n ?? 0]);
  }
  return Object.fromEntries(counts.filter(([, rows]) => only !== undefined || rows !== 0));
}

async function schemaOf(client: Client): Promise<number[]> {
  const { rows } = await client.query<{ id: string }>(
    'SELECT id FROM schema_migrations ORDER BY id',
  );
  return rows.map(({ id }) => Number(id));
}

/** A clock that stands at the last record of a database: jobs delete what is older for today's. */
async function clockOf(url: string): Promise<ManualClock> {
  const { rows } = await ask(url, (client) =>
    client.query<{ last: string }>('SELECT max(accepted_at) AS last FROM timeline_records'),
  );
  return new ManualClock(Number(rows[0]?.last));
}

/**
 * Starts and stops the relay of today, at the time of its records; returns what it logs, and the accounts
 * with messages.
 */
async function startedOn(url: string, data: string) {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const storage = { engine: 'postgres', url } as const;
  const values = { data, dev: true, listen: '127.0.0.1:0', storage };
  await using relay = await Relay.start(values, { log, clock: await clockOf(url) });
  const timelines = await relay.context.storage.read((tx) =>
    tx.all('SELECT account FROM timeline_heads'),
  );
  return { log: lines.join(''), accounts: timelines.length };
}

test.each(readdirSync(kept).flatMap((name) => form.exec(name)?.[1] ?? []))(
  'a relay of today upgrades the kept PostgreSQL database %s: it says so, and loses no row',
  async (name) => {
    using folder = temporaryFolder();
    execFileSync('tar', ['-xzf', join(kept, `${name}.tgz`), '-C', folder.path]);
    // Keys and tables are of the same relay.
    rmSync(join(folder.path, 'relay.sqlite'));
    const url = await server.createDatabase();
    const text = gunzipSync(readFileSync(join(kept, `postgres-${name}.sql.gz`))).toString();
    await ask(url, (client) => client.query(text));
    const [before, schema] = await ask(url, async (client) => [
      await rowsOf(client),
      await schemaOf(client),
    ]);
    expect(Object.keys(before).length).toBeGreaterThan(5);

    const { log, accounts } = await startedOn(url, folder.path);
    const to = relayMigrations.length;
    expect(accounts).toBe(2);
    expect(log).toContain(`the database is upgraded from schema ${schema.length} to ${to}`);
    await ask(url, async (client) => {
      expect(await rowsOf(client, Object.keys(before))).toEqual(before);
      expect(await schemaOf(client)).toEqual(
        relayMigrations.map(({ id }) => id).sort((a, b) => a - b),
      );
    });
    // A second start changes nothing.
    expect((await startedOn(url, folder.path)).log).not.toContain('upgraded');
  },
);
