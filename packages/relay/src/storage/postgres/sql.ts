/** Translates the stores' SQL for PostgreSQL, and has the engine's own statements. */
import { hash } from 'node:crypto';
import type { AggregateKey } from '../types.ts';

/** Limit of prepared statements per connection; the stores have far fewer. */
const preparedStatements = 1_000;

/** A statement in PostgreSQL's syntax, with the name it is prepared under. */
export interface PostgresStatement {
  readonly text: string;
  readonly name?: string;
  /** Whether it changes nothing. */
  readonly isReading: boolean;
}

/** The statements of one relay, translated once, with the same names on every connection. */
export class PostgresStatements {
  readonly #known = new Map<string, PostgresStatement>();

  /** Returns the translated statement. */
  of(sql: string): PostgresStatement {
    const known = this.#known.get(sql);
    if (known !== undefined) return known;
    const text = translate(sql);
    const isReading = /^\s*SELECT\b/i.test(sql);
    // Definitions run once; preparing them would take the space of the stores' statements.
    if (isDefinition(sql) || this.#known.size >= preparedStatements) return { text, isReading };
    const statement = { text, name: `s${this.#known.size}`, isReading };
    this.#known.set(sql, statement);
    return statement;
  }
}

function isDefinition(sql: string): boolean {
  return /^\s*(?:CREATE|ALTER|DROP)\b/i.test(sql);
}

/**
 * Numbers the parameters, and makes text columns compare byte by byte, whatever the database's
 * locale is.
 */
function translate(sql: string): string {
  let count = 0;
  return sql
    .split(/('(?:[^']|'')*'|"(?:[^"]|"")*")/)
    .map((part, index) => {
      if (index % 2 === 1) return part;
      const numbered = part.replaceAll('?', () => {
        count += 1;
        return `$${count}`;
      });
      return isDefinition(sql) ? numbered.replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"') : numbered;
    })
    .join('');
}

/** Begins a read transaction with one snapshot for all its statements. */
export const beginReadSql = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

/**
 * Returns the SQL that begins a write: it takes the locks of the aggregates, always in the same order
 * so that no two writes deadlock. Later statements see everything committed before them.
 *
 * @param timeout milliseconds for each of its statements, if they may take long
 */
export function beginWriteSql(keys: readonly AggregateKey[], timeout?: number): string {
  if (keys.length === 0) throw new TypeError('a write needs at least one aggregate');
  const numbers = [...new Set(keys.map(lockNumber))].sort((a, b) => (a < b ? -1 : 1));
  return [
    beginBatchSql,
    ...(timeout === undefined ? [] : timeoutSql(timeout)),
    ...numbers.map((number) => `SELECT pg_advisory_xact_lock(${number})`),
  ].join(';');
}

function timeoutSql(timeout: number): string[] {
  return ['statement_timeout', 'lock_timeout'].map((name) => `SET LOCAL ${name} = ${timeout}`);
}

/** If two aggregates have the same number, they only wait for each other needlessly. */
export function lockNumber(key: AggregateKey): bigint {
  return hash('sha256', key, 'buffer').readBigInt64BE();
}

/** Begins a batch of appends, whose first statement is {@link tryLocksSql}. */
export const beginBatchSql = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE';

/**
 * Returns the SQL that begins a batch when it is its turn: batches of all processes that ask for one
 * run one after another.
 *
 * @param timeouts milliseconds to wait for the turn, and for each lock after it
 */
export function beginTurnSql(timeouts: { readonly turn: number; readonly lock: number }): string {
  return [
    beginBatchSql,
    `SET LOCAL lock_timeout = ${timeouts.turn}`,
    `SELECT pg_advisory_xact_lock(${locks.turn})`,
    `SET LOCAL lock_timeout = ${timeouts.lock}`,
  ].join(';');
}

/**
 * Takes locks that exclude the writes of the aggregates but not other batches, as far as they are
 * free: a lock that a write holds or waits for is not taken. A row for each number, in their order.
 */
export const tryLocksSql = `SELECT pg_try_advisory_xact_lock_shared(number) AS taken
  FROM unnest(?::bigint[]) AS number`;

/** The engine's own locks have two numbers each; locks of aggregates have one. */
const lockSpace = 0x706f7374;
export const locks = {
  /** Held shared by every connection, and exclusively by a move. */
  use: `${lockSpace}, 1`,
  /** Held by relay processes; shared if there are several. */
  relay: `${lockSpace}, 2`,
  /** Held while the table of commits is created. */
  commits: `${lockSpace}, 3`,
  /** Held by a batch of appends in its turn. */
  turn: `${lockSpace}, 4`,
} as const;
