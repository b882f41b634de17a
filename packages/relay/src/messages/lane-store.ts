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

/**
 * Rows of a delivery that one statement changes: each is rewritten with its texts, of up to 100 KB, and a
 * statement is not divided over turns of the event loop.
 */
const rowsOfStatement = 64;

/** Repeats a statement until it has changed so many rows, or finds no more; returns how many. */
async function inStatements(
  batchSize: number,
  change: (rows: number) => Promise<number>,
): Promise<number> {
  let changed = 0;
  while (changed < batchSize) {
    const rows = Math.min(rowsOfStatement, batchSize - changed);
    const more = await change(rows);
    changed += more;
    if (more < rows) break;
  }
  return changed;
}

/** Some deliveries of one destination. */
interface LaneBatch {
  readonly destination: string;
  /** Unix seconds. */
  readonly now: number;
  readonly batchSize: number;
}

// Of each statement that changes rows, `|| ''` and `+ 0` keep the condition of the update, which another
// process may have made false meanwhile, from walking over the lane a second time, to its end.
export const postponeLaneSql = `UPDATE deliveries
  SET next_attempt_at = CASE WHEN deadline < ? THEN deadline ELSE ? END
  WHERE destination || '' = ? AND next_attempt_at + 0 <= ? AND (sender, message_id) IN
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
  const recipients = new Set<string>();
  await inStatements(batchSize, async (most) => {
    const due = [destination, now, now, most];
    const rows = await tx.all<Row & { recipient: string; target: string | null }>(
      postponeLaneSql,
      ...[until, until, destination, now, ...due],
    );
    for (const { recipient, target } of rows) if (target === null) recipients.add(recipient);
    return rows.length;
  });
  return recipients;
}

export const wakeLaneSql = `UPDATE deliveries SET next_attempt_at = ?
  WHERE destination || '' = ? AND next_attempt_at + 0 > ? AND wake_after <= ?
    AND (sender, message_id) IN
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
  return await inStatements(batchSize, (most) =>
    tx.run(wakeLaneSql, now, ...waiting, ...waiting, most),
  );
}

// Only a claim sets `wake_after` after the next attempt: the lease's end and the second after it.
export const releaseLaneSql = `UPDATE deliveries SET next_attempt_at = ?, wake_after = ?
  WHERE destination || '' = ? AND wake_after > next_attempt_at AND (sender, message_id) IN
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
  return await inStatements(batchSize, (most) =>
    tx.run(releaseLaneSql, now, now, destination, destination, now, most),
  );
}

export const moveInLaneSql = `UPDATE deliveries SET destination = ?, next_attempt_at = ?
  WHERE destination || '' = ? AND target || '' IS NULL AND wake_after + 0 <= ?
    AND (sender, message_id) IN
    (SELECT sender, message_id FROM deliveries
      WHERE destination = ? AND recipient = ? AND target IS NULL AND wake_after <= ? LIMIT ?)`;

/**
 * Moves a recipient's deliveries to the lane of the relay at which it was found; deliveries that
 * the old relay may have received stay. Those of other recipients in the lane cost nothing.
 */
export async function moveToLane(
  tx: Writer,
  { destination, now, batchSize }: LaneBatch,
  found: { readonly recipient: string; readonly relayId: string },
): Promise<void> {
  const waiting = [destination, found.recipient, now];
  await inStatements(batchSize, (most) =>
    tx.run(moveInLaneSql, found.relayId, now, destination, now, ...waiting, most),
  );
}
