/** What a failure on PostgreSQL means for the transaction it happened in. */
import { DatabaseError } from 'pg';

/** The connection cannot be used for what was to be done: it, or the server, is gone or going. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** No connection came free for as long as a caller can be kept waiting. */
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
  // connection exceptions, except for statements the protocol does not allow; shutdown, crash,
  // starting up, dropped; timeouts that end the connection
  [/^08(?!P01)|^57P0[1-5]$|^25P0[34]$/, 'lost'],
  // insufficient resources, too many connections among them; lock_not_available; query_canceled
  [/^53|^55P03$|^57014$/, 'busy'],
];

/** Where a prepared statement met tables that a newer process changed; a new connection helps. */
const outdatedPlan = 'RevalidateCachedQuery';

export function failureKind(error: unknown): FailureKind {
  if (error instanceof ConnectionLost) return 'lost';
  if (error instanceof ConnectionsBusy) return 'busy';
  if (!(error instanceof DatabaseError)) return 'refused';
  if (error.routine === outdatedPlan) return 'lost';
  const code = error.code ?? '';
  return kinds.find(([codes]) => codes.test(code))?.[1] ?? 'refused';
}

/** The driver has no class for the end of a connection: whatever no server sent is one. */
export function fromDriver(error: unknown): unknown {
  const isOther = error instanceof TypeError || error instanceof RangeError;
  if (isOther || error instanceof DatabaseError || error instanceof ConnectionLost) return error;
  return new ConnectionLost('the connection to PostgreSQL broke', { cause: error });
}

/** A connection on which nothing can begin is of no use: its server may be a standby by now. */
export function fromBeginning(error: unknown): unknown {
  const known = fromDriver(error);
  if (failureKind(known) !== 'refused') return known;
  return new ConnectionLost(`nothing can begin: ${describeFailure(error)}`, { cause: error });
}

/** What the driver says when no connection came free in time; it has no code for it. */
const poolTimeout = 'timeout exceeded when trying to connect';

/** What it means that there is no connection, whatever the reason: a wrong password passes, too. */
export function fromConnecting(error: unknown): Error {
  if ((error as Error).message === poolTimeout) {
    return new ConnectionsBusy('every connection to PostgreSQL is at work', { cause: error });
  }
  if (error instanceof DatabaseError && failureKind(error) === 'busy') return error;
  if (error instanceof ConnectionLost) return error;
  return new ConnectionLost(`no connection to PostgreSQL: ${describeFailure(error)}`, {
    cause: error,
  });
}

/** What the driver says when a server did not answer while connecting. */
const connectTimeout = 'timeout expired';

/** invalid_catalog_name: the server does not have the database. */
const noDatabase = '3D000';

/** Whether nothing answers where a database was, or a server that does not have it. */
export function isAbsent(error: unknown): boolean {
  if (error instanceof DatabaseError) return error.code === noDatabase;
  const { errors, syscall, message } = error as AggregateError & { syscall?: string };
  if (Array.isArray(errors)) return errors.every(isAbsent);
  return syscall === 'connect' || syscall === 'getaddrinfo' || message === connectTimeout;
}

const tlsCodes = /CERT|TLS|SSL|SIGNATURE|ISSUER/;

/** A sentence for operators; the driver's own words contain no password. */
export function describeFailure(error: unknown): string {
  const { errors, cause, code = '', message } = error as AggregateError & { code?: string };
  // A name with several addresses fails once for each of them.
  if (Array.isArray(errors)) return [...new Set(errors.map(describeFailure))].join('; ');
  if (error instanceof ConnectionLost && cause !== undefined) return describeFailure(cause);
  if (message === connectTimeout) return 'no answer in time';
  const isTls = tlsCodes.test(code) || message.includes('SSL connection');
  return isTls && !(error instanceof DatabaseError) ? `TLS failed: ${message}` : message;
}
