/** What a failure on PostgreSQL means for the transaction it happened in. */
import { DatabaseError } from 'pg';

/** The connection cannot be used for what was to be done: it, or the server, is gone or going. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** Every connection was at work for as long as a caller can be kept waiting. */
export class ConnectionsBusy extends Error {
  override readonly name = 'ConnectionsBusy';
}

/**
 * - `conflict`: nothing was applied, the same work may succeed at once;
 * - `lost`: this connection is over, or its server takes no writes;
 * - `busy`: nothing was applied, there is no room or time for it now;
 * - `refused`: anything else, which another try would meet again.
 */
export type FailureKind = 'conflict' | 'lost' | 'busy' | 'refused';

const kinds: readonly [RegExp, FailureKind][] = [
  // serialization_failure, deadlock_detected
  [/^40001$|^40P01$/, 'conflict'],
  // connection exceptions; shutdown, crash, starting up; timeouts that end the connection;
  // read_only_sql_transaction of a server that was the primary
  [/^08|^57P0[1-5]$|^25P0[34]$|^25006$/, 'lost'],
  // insufficient resources; lock_not_available; query_canceled by a timeout
  [/^53|^55P03$|^57014$/, 'busy'],
];

export function failureKind(error: unknown): FailureKind {
  if (error instanceof ConnectionLost) return 'lost';
  if (error instanceof ConnectionsBusy) return 'busy';
  if (!(error instanceof DatabaseError)) return 'refused';
  const code = error.code ?? '';
  return kinds.find(([codes]) => codes.test(code))?.[1] ?? 'refused';
}

/** The driver has no class for the end of a connection: whatever no server sent is one. */
export function fromDriver(error: unknown): unknown {
  const isOther = error instanceof TypeError || error instanceof RangeError;
  if (isOther || error instanceof DatabaseError || error instanceof ConnectionLost) return error;
  return new ConnectionLost('the connection to PostgreSQL broke', { cause: error });
}
