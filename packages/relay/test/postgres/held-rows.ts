import { Client } from 'pg';
import { askUntil } from '../support/postgres-engine.ts';

/** Runs a statement in a session of its own, and commits it when `work` waits for its rows. */
export async function heldUntilWaited(
  url: string,
  sql: string,
  work: () => Promise<void>,
): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('BEGIN');
  await client.query(sql);
  const done = work();
  await askUntil(url, 'SELECT 1 FROM pg_locks WHERE NOT granted', (rows) => rows.length > 0);
  await client.query('COMMIT');
  await client.end();
  await done;
}
