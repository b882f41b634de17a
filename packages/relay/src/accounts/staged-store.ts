/** SQL of staged device states (03 §4.3). */
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { StoredState } from './store.ts';

/** A pre-stored state: it permits nothing (03 section 4.2). */
export interface StagedState extends StoredState {
  readonly stagedUntil: number;
  /** When its account was given room here; higher revisions keep it. Unix seconds. */
  readonly since: number;
  /** The client address that the room was given to. */
  readonly address: string;
}

/** Reads the pre-stored state if its retention is not over. */
export async function readStaged(
  tx: Reader,
  account: string,
  now: number,
): Promise<StagedState | undefined> {
  return await tx.get<StagedState & Row>(
    `SELECT revision, state AS text, staged_until AS "stagedUntil", since, address
      FROM staged_states WHERE account = ? AND staged_until > ?`,
    account,
    now,
  );
}

export async function writeStaged(tx: Writer, account: string, staged: StagedState): Promise<void> {
  await tx.run(
    `INSERT INTO staged_states (account, revision, staged_until, since, address, state)
      VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET revision = excluded.revision,
        staged_until = excluded.staged_until, since = excluded.since,
        address = excluded.address, state = excluded.state`,
    account,
    staged.revision,
    staged.stagedUntil,
    staged.since,
    staged.address,
    staged.text,
  );
}

export async function deleteStaged(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM staged_states WHERE account = ?', account);
}

/**
 * Returns when room for a pre-stored state comes; `undefined` if fewer than `limit` are stored.
 * @param room.address counts only the states of this client address
 */
export async function stagingFullUntil(
  tx: Reader,
  now: number,
  room: { readonly limit: number; readonly address?: string },
): Promise<number | undefined> {
  const { limit, address } = room;
  const ofAddress = address === undefined ? '' : 'address = ? AND';
  const row = await tx.get<{ kept: number; earliest: number }>(
    `SELECT COUNT(*) AS kept, MIN(staged_until) AS earliest FROM
      (SELECT staged_until FROM staged_states WHERE ${ofAddress} staged_until > ?
        ORDER BY staged_until LIMIT ?) AS kept_states`,
    ...(address === undefined ? [] : [address]),
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
