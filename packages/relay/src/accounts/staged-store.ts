/** SQL of staged device states (03 §4.3). */
import type { Reader, Writer } from '../storage/types.ts';
import type { StoredState } from './store.ts';

/** A pre-stored state: it permits nothing (03 section 4.2). */
export interface StagedState extends StoredState {
  readonly stagedUntil: number;
}

/** Reads the pre-stored state if its retention is not over. */
export async function readStaged(
  tx: Reader,
  account: string,
  now: number,
): Promise<StagedState | undefined> {
  return await tx.get<{ revision: number; text: string; stagedUntil: number }>(
    `SELECT revision, state AS text, staged_until AS "stagedUntil" FROM staged_states
      WHERE account = ? AND staged_until > ?`,
    account,
    now,
  );
}

export async function writeStaged(tx: Writer, account: string, staged: StagedState): Promise<void> {
  await tx.run(
    `INSERT INTO staged_states (account, revision, staged_until, state) VALUES (?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET revision = excluded.revision,
        staged_until = excluded.staged_until, state = excluded.state`,
    account,
    staged.revision,
    staged.stagedUntil,
    staged.text,
  );
}

export async function deleteStaged(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM staged_states WHERE account = ?', account);
}

/** Returns when room for a pre-stored state comes; `undefined` if fewer than `limit` are stored. */
export async function stagingFullUntil(
  tx: Reader,
  now: number,
  limit: number,
): Promise<number | undefined> {
  const row = await tx.get<{ kept: number; earliest: number }>(
    `SELECT COUNT(*) AS kept, MIN(staged_until) AS earliest FROM
      (SELECT staged_until FROM staged_states WHERE staged_until > ?
        ORDER BY staged_until LIMIT ?) AS kept_states`,
    now,
    limit,
  );
  return row !== undefined && row.kept >= limit ? row.earliest : undefined;
}

/** Removes up to `batchSize` pre-stored states whose retention ended; returns how many. */
export async function deleteExpiredStaged(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  return await tx.run(
    `DELETE FROM staged_states WHERE staged_until <= ? AND account IN
      (SELECT account FROM staged_states WHERE staged_until <= ? LIMIT ?)`,
    now,
    now,
    batchSize,
  );
}

/** Returns when the next pre-stored state ends, or `undefined` if there is none. */
export async function nextStagedDeadline(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ staged_until: number }>(
    'SELECT staged_until FROM staged_states ORDER BY staged_until LIMIT 1',
  );
  return row?.staged_until;
}
