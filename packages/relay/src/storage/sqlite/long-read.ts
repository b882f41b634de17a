import { nextTurn } from '../../event-loop.ts';
import type { Reader, Row, SqlValue } from '../types.ts';
import { SqliteConnection } from './connection.ts';
import { whileLocked } from './lock-wait.ts';

interface LongReadOptions {
  /** Milliseconds for which a lock of another process is waited for. */
  readonly lockTimeout: number;
  /** Waits until what was committed before is on disk. */
  readonly settled: () => Promise<void> | undefined;
}

/** Reads one snapshot on a connection of its own: those of calls stay free. */
export async function longRead<T>(
  path: string,
  { lockTimeout, settled }: LongReadOptions,
  work: (tx: Reader) => Promise<T>,
): Promise<T> {
  const connection = new SqliteConnection(path, { readOnly: true });
  const next = async <R>(statement: () => R): Promise<R> => {
    await nextTurn();
    return statement();
  };
  try {
    await whileLocked(() => begin(connection), lockTimeout);
    await settled();
    return await work({
      get: <R extends Row>(sql: string, ...values: SqlValue[]) =>
        next(() => connection.get(sql, values) as R | undefined),
      all: <R extends Row>(sql: string, ...values: SqlValue[]) =>
        next(() => connection.all(sql, values) as R[]),
    });
  } finally {
    connection.close();
  }
}

/** A transaction sees what is there at its first statement. */
function begin(connection: SqliteConnection): void {
  if (!connection.isInTransaction) connection.run('BEGIN', []);
  connection.get('SELECT 1 AS one FROM sqlite_schema LIMIT 1', []);
}
