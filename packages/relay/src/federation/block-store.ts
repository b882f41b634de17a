/** SQL of the operator's list of blocked relays. A running relay reads it by itself. */
import { readBoundRelay } from '../storage/identity.ts';
import type { Reader, Row, Storage } from '../storage/types.ts';
import { endPause } from './health-store.ts';
import { knownRelays } from './store.ts';

/** A relay that the operator refuses, whatever the registry says. */
export interface BlockedRelay {
  readonly relayId: string;
  /** Empty if none was given. */
  readonly reason: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

/**
 * Blocks a relay; if it is blocked already, a reason replaces the one it has.
 *
 * @param now Unix seconds
 * @param limits `relays` is the largest number of blocked relays
 * @returns whether it was not blocked before
 * @throws Error if the relay is the one that the database belongs to, or the list is full
 */
export async function blockRelay(
  storage: Storage,
  { relayId, reason }: Omit<BlockedRelay, 'createdAt'>,
  { now, relays }: { readonly now: number; readonly relays: number },
): Promise<boolean> {
  return await storage.write(knownRelays, async (tx) => {
    if (relayId === (await readBoundRelay(tx))) {
      throw new Error(`${relayId} is this relay itself: give the ID of another relay`);
    }
    const changed = await tx.run(
      "UPDATE blocked_relays SET reason = CASE WHEN ? = '' THEN reason ELSE ? END WHERE relay_id = ?",
      reason,
      reason,
      relayId,
    );
    if (changed > 0) return false;
    const count = await tx.get<{ blocked: number }>(
      'SELECT COUNT(*) AS blocked FROM blocked_relays',
    );
    if (Number(count?.blocked) >= relays) {
      throw new Error(`${relays} relays are blocked: remove one, or raise limits.blockedRelays`);
    }
    await tx.run(
      'INSERT INTO blocked_relays (relay_id, reason, created_at) VALUES (?, ?, ?)',
      relayId,
      reason,
      now,
    );
    return true;
  });
}

/**
 * Ends the block of a relay, and the pause that failed dials of the blocked relay began.
 *
 * @param now Unix seconds
 * @returns whether it was blocked
 */
export async function unblockRelay(
  storage: Storage,
  relayId: string,
  now: number,
): Promise<boolean> {
  return await storage.write(knownRelays, async (tx) => {
    const removed = await tx.run('DELETE FROM blocked_relays WHERE relay_id = ?', relayId);
    if (removed > 0) await endPause(tx, relayId, now);
    return removed > 0;
  });
}

/** Lists the blocked relays, the newest last; at most `limit`. */
export async function listBlockedRelays(tx: Reader, limit: number): Promise<BlockedRelay[]> {
  return await tx.all<Row & BlockedRelay>(
    `SELECT relay_id AS "relayId", reason, created_at AS "createdAt" FROM blocked_relays
      ORDER BY created_at, relay_id LIMIT ?`,
    limit,
  );
}

/** Tells whether the operator blocked a relay. */
export async function isBlocked(tx: Reader, relayId: string): Promise<boolean> {
  const row = await tx.get('SELECT relay_id FROM blocked_relays WHERE relay_id = ?', relayId);
  return row !== undefined;
}

/** Reads the IDs of all blocked relays; the operator enters them one by one. */
export async function readBlocked(tx: Reader): Promise<ReadonlySet<string>> {
  const rows = await tx.all<{ relay_id: string }>('SELECT relay_id FROM blocked_relays');
  return new Set(rows.map((row) => row.relay_id));
}
