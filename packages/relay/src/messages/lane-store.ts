/**
 * SQL of the delivery queue's lanes: the deliveries of one destination. A lane is found and read by
 * the index (destination, next_attempt_at), so that deliveries in other lanes cost nothing.
 */
import type { Reader, Row, Writer } from '../storage/types.ts';

/** The lane of deliveries whose recipients must be located first. */
export const unlocated = '';

/** The deliveries of one destination. */
export interface Lane {
  /** Relay ID, or {@link unlocated}. */
  readonly destination: string;
  /** Unix second at which its first delivery is due. */
  readonly nextAttemptAt: number;
}

/** Reads every destination by one step along the index each, however many deliveries it has. */
export const lanesSql = `WITH RECURSIVE lanes (destination) AS (
    SELECT MIN(destination) FROM deliveries
    UNION ALL
    SELECT (SELECT MIN(d.destination) FROM deliveries d WHERE d.destination > lanes.destination)
      FROM lanes WHERE lanes.destination IS NOT NULL
  )
  SELECT destination, (SELECT MIN(d.next_attempt_at) FROM deliveries d
      WHERE d.destination = lanes.destination) AS "nextAttemptAt"
    FROM lanes WHERE destination IS NOT NULL`;

/** Reads all lanes. */
export async function readLanes(tx: Reader): Promise<Lane[]> {
  return await tx.all<Row & { destination: string; nextAttemptAt: number }>(lanesSql);
}

/** Some deliveries of one destination. */
interface LaneBatch {
  readonly destination: string;
  /** Unix seconds. */
  readonly now: number;
  readonly batchSize: number;
}

export const postponeLaneSql = `UPDATE deliveries
  SET next_attempt_at = CASE WHEN deadline < ? THEN deadline ELSE ? END
  WHERE destination = ? AND next_attempt_at <= ? AND (sender, message_id) IN
    (SELECT sender, message_id FROM deliveries
      WHERE destination = ? AND next_attempt_at <= ? AND deadline > ? LIMIT ?)
  RETURNING recipient, target`;

/**
 * Postpones due deliveries of a lane without an attempt, none past its deadline. Deliveries at
 * their deadline stay due.
 *
 * @returns the recipients of those that no relay may have received: they may go to another one
 */
export async function postponeLane(
  tx: Writer,
  { destination, now, batchSize }: LaneBatch,
  until: number,
): Promise<Set<string>> {
  const due = [destination, now, now, batchSize];
  const rows = await tx.all<Row & { recipient: string; target: string | null }>(
    postponeLaneSql,
    ...[until, until, destination, now, ...due],
  );
  return new Set(rows.filter(({ target }) => target === null).map((row) => row.recipient));
}

export const wakeLaneSql = `UPDATE deliveries SET next_attempt_at = ?
  WHERE destination = ? AND next_attempt_at > ? AND wake_after <= ? AND (sender, message_id) IN
    (SELECT sender, message_id FROM deliveries
      WHERE destination = ? AND next_attempt_at > ? AND wake_after <= ? LIMIT ?)`;

/**
 * Makes waiting deliveries of a lane due: not those that a process has claimed, nor those for which
 * the relay's own answer demands a wait. Returns how many became due.
 */
export async function wakeLane(
  tx: Writer,
  { destination, now, batchSize }: LaneBatch,
): Promise<number> {
  const waiting = [destination, now, now];
  return await tx.run(wakeLaneSql, now, ...waiting, ...waiting, batchSize);
}

// Only a claim sets `wake_after` after the next attempt: the lease's end and the second after it.
export const releaseLaneSql = `UPDATE deliveries SET next_attempt_at = ?, wake_after = ?
  WHERE destination = ? AND wake_after > next_attempt_at AND (sender, message_id) IN
    (SELECT sender, message_id FROM deliveries
      WHERE destination = ? AND next_attempt_at > ? AND wake_after > next_attempt_at LIMIT ?)`;

/**
 * Makes claimed deliveries of a lane due before their leases end. Returns how many. Their attempts
 * must be over, in every process.
 */
export async function releaseLane(
  tx: Writer,
  { destination, now, batchSize }: LaneBatch,
): Promise<number> {
  return await tx.run(releaseLaneSql, now, now, destination, destination, now, batchSize);
}

export const moveInLaneSql = `UPDATE deliveries SET destination = ?, next_attempt_at = ?
  WHERE destination = ? AND target IS NULL AND wake_after <= ? AND (sender, message_id) IN
    (SELECT sender, message_id FROM deliveries
      WHERE destination = ? AND recipient = ? AND target IS NULL AND wake_after <= ? LIMIT ?)`;

/**
 * Moves a recipient's deliveries to the lane of the relay at which it was found; deliveries that
 * the old relay may have received stay.
 */
export async function moveToLane(
  tx: Writer,
  { destination, now, batchSize }: LaneBatch,
  found: { readonly recipient: string; readonly relayId: string },
): Promise<void> {
  const at = [destination, found.recipient, now, batchSize];
  await tx.run(moveInLaneSql, found.relayId, now, destination, now, ...at);
}
