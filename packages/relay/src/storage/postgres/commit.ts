/** Commits a transaction. */
import { type CommitMark, markCommit } from './commits.ts';
import type { Lease } from './connections.ts';
import { failureKind, fromDriver } from './errors.ts';
import type { PostgresTransaction } from './transaction.ts';

/** A COMMIT whose outcome the client does not know. */
export interface UnansweredCommit {
  readonly mark: CommitMark;
  readonly cause: unknown;
}

/**
 * Commits, and releases the connection.
 *
 * @returns `undefined` if it was committed
 * @throws the error, if nothing was committed
 */
export async function commit(
  lease: Lease,
  tx: PostgresTransaction,
): Promise<UnansweredCommit | undefined> {
  const { client } = lease;
  // A transaction that changed nothing can be repeated without checking.
  const marked = tx.isReading ? undefined : markCommit(client);
  const [noted, committed] = await Promise.allSettled([marked?.noted, client.query('COMMIT')]);
  if (committed.status === 'fulfilled' && committed.value.command === 'COMMIT') {
    lease.release();
    return undefined;
  }
  const cause = commitFailure(tx, noted, committed);
  lease.release(cause);
  // If the server refused, nothing was committed; if the connection broke, the outcome is unknown.
  if (marked === undefined || failureKind(cause) !== 'lost') throw cause;
  return { mark: marked.mark, cause };
}

/** Returns why a commit failed: after a failed statement, COMMIT succeeds as a ROLLBACK. */
function commitFailure(
  tx: PostgresTransaction,
  ...outcomes: readonly PromiseSettledResult<unknown>[]
): unknown {
  const rejected = outcomes.find((outcome) => outcome.status === 'rejected');
  if (tx.failure !== undefined) return tx.failure;
  if (rejected !== undefined) return fromDriver(rejected.reason);
  return new Error('PostgreSQL rolled back a write');
}
