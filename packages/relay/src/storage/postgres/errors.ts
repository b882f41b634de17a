/** Classifies failures of PostgreSQL: whether a transaction may be retried, and what operators are told. */
import { DatabaseError } from 'pg';

/** The connection cannot be used any more: it broke, or the server is stopping or read-only. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** No connection became free within a caller's timeout. */
export class ConnectionsBusy extends Error {
  override readonly name = 'ConnectionsBusy';
}

/**
 * - `conflict`: nothing was applied; a retry may succeed at once;
 * - `lost`: the connection is broken, or its server accepts no writes;
 * - `busy`: nothing was applied; the server has no room or time for it now;
 * - `refused`: anything else; a retry would fail again.
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

/** Error routine of a prepared statement whose tables a newer process changed; a new connection helps. */
const outdatedPlan = 'RevalidateCachedQuery';

/** Classifies an error of a statement or a connection. */
export function failureKind(error: unknown): FailureKind {
  if (error instanceof ConnectionLost) return 'lost';
  if (error instanceof ConnectionsBusy) return 'busy';
  if (!(error instanceof DatabaseError)) return 'refused';
  if (error.routine === outdatedPlan) return 'lost';
  const code = error.code ?? '';
  return kinds.find(([codes]) => codes.test(code))?.[1] ?? 'refused';
}

/** Converts an error of the driver: anything but a server's error or a bug means a lost connection. */
export function fromDriver(error: unknown): unknown {
  const isOther = error instanceof TypeError || error instanceof RangeError;
  if (isOther || error instanceof DatabaseError || error instanceof ConnectionLost) return error;
  return new ConnectionLost('the connection to PostgreSQL broke', { cause: error });
}

/** Converts an error of BEGIN: the connection is unusable; its server may have become a standby. */
export function fromBeginning(error: unknown): unknown {
  const known = fromDriver(error);
  if (failureKind(known) !== 'refused') return known;
  return new ConnectionLost(`no transaction can begin: ${describeFailure(error)}`, {
    cause: error,
  });
}

/** The driver's message if no connection became free in time; it has no code for it. */
const poolTimeout = 'timeout exceeded when trying to connect';

/** Converts an error of connecting; every reason counts as temporary, even a wrong password. */
export function fromConnecting(error: unknown): Error {
  if ((error as Error).message === poolTimeout) {
    return new ConnectionsBusy('every connection to PostgreSQL is in use', { cause: error });
  }
  if (error instanceof DatabaseError && failureKind(error) === 'busy') return error;
  if (error instanceof ConnectionLost) return error;
  return new ConnectionLost(`no connection to PostgreSQL: ${describeFailure(error)}`, {
    cause: error,
  });
}

/** The driver's message if a server did not answer while connecting. */
const connectTimeout = 'timeout expired';

/** invalid_catalog_name: the server does not have the database. */
const noDatabase = '3D000';

/** Returns whether no server answers, or the server does not have the database. */
export function isAbsent(error: unknown): boolean {
  if (error instanceof DatabaseError) return error.code === noDatabase;
  const { errors, syscall, message } = error as AggregateError & { syscall?: string };
  if (Array.isArray(errors)) return errors.every(isAbsent);
  return syscall === 'connect' || syscall === 'getaddrinfo' || message === connectTimeout;
}

const tlsCodes = /CERT|TLS|SSL|SIGNATURE|ISSUER/;

/** Describes an error for operators; messages of the driver contain no password. */
export function describeFailure(error: unknown): string {
  const { errors, cause, code = '', message } = error as AggregateError & { code?: string };
  // A host name with several addresses fails once for each.
  if (Array.isArray(errors)) return [...new Set(errors.map(describeFailure))].join('; ');
  if (error instanceof ConnectionLost && cause !== undefined) return describeFailure(cause);
  if (message === connectTimeout) return 'no answer in time';
  return isTls(code, message) && !(error instanceof DatabaseError)
    ? `TLS failed: ${message}`
    : message;
}

function isTls(code: string, message: string): boolean {
  return tlsCodes.test(code) || message.includes('SSL connection');
}

/** What operators do about errors of the server, by code. */
const cures: Readonly<Record<string, string>> = {
  '28P01': 'correct user and password in `storage.url`',
  '28000': 'correct the user in `storage.url`, or let it in (pg_hba.conf of the server)',
  [noDatabase]:
    'create it with `createdb --encoding UTF8 --template template0`, or correct `storage.url`',
  '42501': 'make the user the owner of the database',
};

/** Returns what operators do about an error of the start; `undefined` if the error says it. */
export function cureOf(error: unknown): string | undefined {
  const { errors, cause, code = '', message } = error as AggregateError & { code?: string };
  if (error instanceof ConnectionLost && cause !== undefined) return cureOf(cause);
  if (error instanceof DatabaseError) return cures[code];
  if (Array.isArray(errors)) return cureOf(errors[0]);
  if (isTls(code, message)) {
    return "correct `sslmode` and `sslrootcert` in `storage.url`, or the server's certificate";
  }
  // The server asks for a password, and the URL has none.
  if (message.startsWith('SASL')) return cures['28P01'];
  return isAbsent(error)
    ? 'start the server, or correct host and port in `storage.url`'
    : undefined;
}
