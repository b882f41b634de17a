/**
 * What became of a COMMIT that was not answered.
 *
 * Every connection has a row that its writes put their number into, in their own transactions: the
 * number stands there if and only if the write was committed. PostgreSQL's own number of the
 * transaction tells less: after a crash the server gives numbers again of which nothing had
 * reached the disk, and `pg_xact_status` says `committed` of somebody else's transaction.
 */
import type { QueryResult } from 'pg';
import type { PostgresClient } from './client.ts';
import { locks } from './sql.ts';

/** The engine's own table; nothing that belongs to the relay's state. */
export const commitsTable = 'posthouse_commits';

/** A write of a connection. */
export interface CommitMark {
  readonly connection: string;
  readonly number: number;
}

/** Makes the table where there is none. Its pages keep room: an update then touches no index. */
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

/** Removes the rows of connections that are long over. A call asks within seconds. */
export async function forgetCommits(client: PostgresClient): Promise<void> {
  await client.query(`BEGIN READ WRITE;
    DELETE FROM ${commitsTable} WHERE connection IN
      (SELECT connection FROM ${commitsTable} WHERE changed_at < now() - INTERVAL '1 day'
        FOR UPDATE SKIP LOCKED);
    COMMIT`);
}

/** Notes the write that the connection's transaction is; not awaited before COMMIT leaves. */
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
 * Whether the write was committed. Asked behind the locks of its aggregates: they are free when it
 * is over, one way or the other.
 */
export async function isCommitted(client: PostgresClient, mark: CommitMark): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT 1 FROM ${commitsTable} WHERE connection = $1 AND number = $2`,
    [mark.connection, mark.number],
  );
  return rowCount === 1;
}
