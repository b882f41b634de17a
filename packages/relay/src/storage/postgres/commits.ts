/**
 * Finds the outcome of a COMMIT that was not answered.
 *
 * Every connection has a row into which its writes put their number, each in its own transaction:
 * the row has the number if and only if the write was committed. PostgreSQL's transaction ID is not
 * reliable: after a crash the server reuses IDs that had not reached the disk, and
 * `pg_xact_status` reports `committed` for an unrelated transaction.
 */
import type { QueryResult } from 'pg';
import type { PostgresClient } from './client.ts';
import { locks } from './sql.ts';

/** The engine's own table; not part of the relay's state. */
export const commitsTable = 'posthouse_commits';

/** Identifies a write by its connection and number. */
export interface CommitMark {
  readonly connection: string;
  readonly number: number;
}

/** Creates the table if there is none. Its fill factor lets updates skip the index. */
export async function makeCommits(client: PostgresClient): Promise<void> {
  await client.query(`BEGIN READ WRITE;
    SELECT pg_advisory_xact_lock(${locks.commits});
    CREATE TABLE IF NOT EXISTS ${commitsTable} (
      connection TEXT COLLATE "C" NOT NULL PRIMARY KEY,
      number BIGINT NOT NULL,
      changed_at TIMESTAMPTZ NOT NULL
    ) WITH (fillfactor = 20);
    COMMIT`);
}

/** Removes the rows of connections that ended a day ago; an outcome is queried within seconds. */
export async function forgetCommits(client: PostgresClient): Promise<void> {
  await client.query(`BEGIN READ WRITE;
    DELETE FROM ${commitsTable} WHERE connection IN
      (SELECT connection FROM ${commitsTable} WHERE changed_at < now() - INTERVAL '1 day'
        FOR UPDATE SKIP LOCKED);
    COMMIT`);
}

/** Writes the mark of the connection's current transaction; COMMIT is sent without awaiting `noted`. */
export function markCommit(client: PostgresClient): {
  readonly mark: CommitMark;
  readonly noted: Promise<QueryResult>;
} {
  client.writes += 1;
  const mark = { connection: client.id, number: client.writes };
  const noted = client.query({
    name: 'mark',
    text: `INSERT INTO ${commitsTable} (connection, number, changed_at) VALUES ($1, $2, now())
      ON CONFLICT (connection) DO UPDATE
        SET number = excluded.number, changed_at = excluded.changed_at`,
    values: [mark.connection, mark.number],
  });
  return { mark, noted };
}

/**
 * Returns whether the write was committed. Call it while holding the locks of its aggregates: they
 * become free only when the write has committed or rolled back.
 */
export async function isCommitted(client: PostgresClient, mark: CommitMark): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT 1 FROM ${commitsTable} WHERE connection = $1 AND number = $2`,
    [mark.connection, mark.number],
  );
  return rowCount === 1;
}
