/** What the tests of the PostgreSQL engine itself share. */
import { Client } from 'pg';
import { vi } from 'vitest';
import type { PostgresObserver } from '../../src/storage/postgres/observer.ts';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { openPostgres, type PostgresOptions } from '../../src/storage/postgres/storage.ts';
import type { PostgresTimeouts } from '../../src/storage/postgres/timeouts.ts';
import type { Row, SqlValue, Storage, Writer } from '../../src/storage/types.ts';
import { patience } from './patience.ts';

/**
 * Timeouts for tests in which something must be given up. On a busy machine they are too short for what must succeed:
 * do that without them, or with {@link again}.
 */
export const impatient: Partial<PostgresTimeouts> = {
  call: 300,
  outcome: 300,
  outcomeRetry: 20,
  start: 200,
  connect: 250,
  lock: 250,
  lockRetry: 20,
  close: 100,
};

/** Remembers what operators were told. */
export class Told implements PostgresObserver {
  readonly events: string[] = [];
  readonly errors: unknown[] = [];
  readonly lost = (error: unknown) => this.#record('lost', error);
  readonly restored = () => this.#record('restored');
  readonly conflicted = () => this.#record('conflicted');
  readonly commitUnknown = (error: unknown) => this.#record('commitUnknown', error);
  /** The aggregates of each call, which is no event for operators. */
  readonly unannouncedKeys: (readonly string[] | 'any')[] = [];
  readonly unannounced = (keys: readonly string[] | 'any') => {
    this.unannouncedKeys.push(keys);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  };
  readonly reachable = (isReachable: boolean) =>
    this.#record(isReachable ? 'reached' : 'out of reach');
  readonly lockLost = (error: unknown) => this.#record('lockLost', error);
  #changed = Promise.withResolvers<void>();

  /** Resolves when the word was told `times` times. */
  async until(word: string, times = 1): Promise<void> {
    while (this.events.filter((told) => told === word).length < times) await this.#changed.promise;
  }

  /** Resolves when so many calls told of aggregates without notices. */
  async untilUnannounced(calls: number): Promise<void> {
    while (this.unannouncedKeys.length < calls) await this.#changed.promise;
  }

  #record(word: string, error?: unknown): void {
    this.events.push(word);
    if (error !== undefined) this.errors.push(error);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

export async function open(
  url: string,
  options: Partial<PostgresOptions> = {},
): Promise<PostgresStorage> {
  return await openPostgres({ url, connections: 10, lockMode: 'together', ...options });
}

/** Repeats what must succeed under timeouts that a busy machine may not meet; returns its first result. */
export function again<T>(attempt: () => Promise<T>): Promise<T> {
  return vi.waitFor(attempt, patience);
}

/** A table of counters: read-modify-write in two statements, wrong wherever two works meet. */
export const counters = {
  async make(storage: Storage): Promise<void> {
    await storage.write('relay', async (tx) => {
      await tx.run('CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)');
    });
  },
  async add(tx: Writer, name: string): Promise<number> {
    const row = await tx.get<{ value: number }>('SELECT value FROM counters WHERE name = ?', name);
    const value = (row?.value ?? 0) + 1;
    await tx.run(
      `INSERT INTO counters (name, value) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      name,
      value,
    );
    return value;
  },
  async of(storage: Storage, name: string): Promise<number> {
    return await storage.read(async (tx) => {
      const sql = 'SELECT value FROM counters WHERE name = ?';
      return (await tx.get<{ value: number }>(sql, name))?.value ?? 0;
    });
  },
};

/** Asks the server itself, past the engine. */
export async function ask<T extends Row>(
  url: string,
  sql: string,
  ...values: SqlValue[]
): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** Asks until the answer is right; a test that waits for ever fails by its timeout. */
export async function askUntil<T extends Row>(
  url: string,
  sql: string,
  isRight: (rows: T[]) => boolean,
): Promise<void> {
  while (!isRight(await ask<T>(url, sql))) await new Promise((resolve) => setImmediate(resolve));
}
