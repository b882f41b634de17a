/** What the common SQL is on PostgreSQL. */
import { createHash } from 'node:crypto';
import type { AggregateKey } from '../types.ts';

/** Statements that every connection keeps prepared; the stores have far fewer. */
const preparedStatements = 1_000;

/** A statement as PostgreSQL takes it, with the name it is prepared under. */
export interface PostgresStatement {
  readonly text: string;
  readonly name?: string;
  /** Whether it leaves everything as it is. */
  readonly isReading: boolean;
}

/** The statements of one relay, translated once and named alike on every connection. */
export class PostgresStatements {
  readonly #known = new Map<string, PostgresStatement>();

  of(sql: string): PostgresStatement {
    const known = this.#known.get(sql);
    if (known !== undefined) return known;
    const text = translate(sql);
    const isReading = /^\s*SELECT\b/i.test(sql);
    // Definitions run once. Nothing is named that might crowd out the statements of the stores.
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
 * Parameters get numbers. Texts are compared byte by byte, whatever the database's locale is, as
 * their tables are defined.
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

/** Begins a read: one snapshot for all its statements. */
export const beginReadSql = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

/**
 * Begins a write: waits for the locks of its aggregates, always in one order so that no two writes
 * wait for each other. Each statement behind it sees what was committed before it.
 *
 * @param patience milliseconds for each of its statements, where they may take long
 */
export function beginWriteSql(keys: readonly AggregateKey[], patience?: number): string {
  if (keys.length === 0) throw new TypeError('a write is of at least one aggregate');
  const numbers = [...new Set(keys.map(lockNumber))].sort((a, b) => (a < b ? -1 : 1));
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    ...(patience === undefined ? [] : waitSql(patience)),
    ...numbers.map((number) => `SELECT pg_advisory_xact_lock(${number})`),
  ].join(';');
}

function waitSql(patience: number): string[] {
  return ['statement_timeout', 'lock_timeout'].map((name) => `SET LOCAL ${name} = ${patience}`);
}

/** Two aggregates of one number only wait for each other without need. */
function lockNumber(key: AggregateKey): bigint {
  return createHash('sha256').update(key).digest().readBigInt64BE();
}

/** The engine's own locks have two numbers each, those of aggregates have one. */
const lockSpace = 0x706f7374;
export const locks = {
  /** Shared by whoever uses the database; who needs it exclusively has it alone. */
  use: `${lockSpace}, 1`,
  /** Of relay processes, shared where they are together. */
  relay: `${lockSpace}, 2`,
  /** Held while the table of commits is made. */
  commits: `${lockSpace}, 3`,
} as const;
