/** What the common SQL is on PostgreSQL. */
import { createHash } from 'node:crypto';
import type { AggregateKey } from './types.ts';

/** Statements that every connection keeps prepared; the stores have far fewer. */
const preparedStatements = 1_000;

/** A statement as PostgreSQL takes it, with the name it is prepared under. */
export interface PostgresStatement {
  readonly text: string;
  readonly name?: string;
}

/** The statements of one relay, translated once and named alike on every connection. */
export class PostgresStatements {
  readonly #known = new Map<string, PostgresStatement>();

  of(sql: string): PostgresStatement {
    const known = this.#known.get(sql);
    if (known !== undefined) return known;
    const text = translate(sql);
    // Definitions run once. Nothing is named that might crowd out the statements of the stores.
    if (isDefinition(sql) || this.#known.size >= preparedStatements) return { text };
    const statement = { text, name: `s${this.#known.size}` };
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

/**
 * Begins a write: waits for the locks of its aggregates, always in one order so that no two writes
 * wait for each other, and learns the number under which its outcome can be asked for later. Each
 * statement behind it sees what was committed before it.
 */
export function beginSql(keys: readonly AggregateKey[]): string {
  const numbers = [...new Set(keys.map(lockNumber))].sort((a, b) => (a < b ? -1 : 1));
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
    ...numbers.map((number) => `SELECT pg_advisory_xact_lock(${number})`),
    'SELECT pg_current_xact_id()::text AS id',
  ].join(';');
}

/** Two aggregates of one number only wait for each other without need. */
function lockNumber(key: AggregateKey): bigint {
  return createHash('sha256').update(key).digest().readBigInt64BE();
}
