/** All SQL that removes expired rows. The caller bounds the batches. */
import { chunks, forEach, largeRows, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';

interface ExpiredRow extends Row {
  account: string;
  sequence: number;
  visible_to: string;
}

export const expiredRecordsSql = `SELECT account, sequence, visible_to FROM timeline_records
  WHERE keep_until <= ? ORDER BY keep_until LIMIT ?`;

/**
 * Removes records whose retention ended, and stores for each device they were visible to the
 * highest removed sequence (04 section 17.4). Returns how many records were removed.
 */
export async function deleteExpiredRecords(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  const expired = await tx.all<ExpiredRow>(expiredRecordsSql, now, batchSize);
  // Accounts at once, and an account in few statements: PostgreSQL answers each one by itself.
  await forEach([...Map.groupBy(expired, ({ account }) => account)], ([account, records]) =>
    deleteRecords(tx, account, records),
  );
  return expired.length;
}

async function deleteRecords(
  tx: Writer,
  account: string,
  records: readonly ExpiredRow[],
): Promise<void> {
  const visible = records.flatMap(({ sequence, visible_to }) =>
    visible_to.split(' ').map((deviceId) => ({ deviceId, sequence })),
  );
  for (const [deviceId, boxes] of Map.groupBy(visible, (box) => box.deviceId)) {
    const sequences = boxes.map(({ sequence }) => sequence);
    await tx.run(
      `INSERT INTO timeline_gaps (account, device_id, sequence) VALUES (?, ?, ?)
        ON CONFLICT (account, device_id) DO UPDATE SET sequence = excluded.sequence
          WHERE excluded.sequence > timeline_gaps.sequence`,
      account,
      deviceId,
      Math.max(...sequences),
    );
    for (const some of chunks(sequences, largeRows)) {
      await tx.run(
        `DELETE FROM timeline_boxes
          WHERE account = ? AND device_id = ? AND sequence IN (${placeholders(some)})`,
        account,
        deviceId,
        ...some,
      );
    }
  }
  const sequences = records.map(({ sequence }) => sequence);
  for (const some of chunks(sequences, largeRows)) {
    await tx.run(
      `DELETE FROM timeline_records WHERE account = ? AND sequence IN (${placeholders(some)})`,
      account,
      ...some,
    );
  }
}

// The outer condition has the deadline too: a row whose deadline moved meanwhile must stay.
/** Results of deliveries that are not over stay. */
export const expiredResultsSql = `DELETE FROM sent_results
  WHERE keep_until <= ? AND status <> 'delivering' AND (sender, message_id) IN
    (SELECT sender, message_id FROM sent_results
      WHERE keep_until <= ? AND status <> 'delivering' LIMIT ?)`;

export const expiredReceivedSql = `DELETE FROM received_results
  WHERE keep_until <= ? AND (sender, message_id) IN
    (SELECT sender, message_id FROM received_results WHERE keep_until <= ? LIMIT ?)`;

export const expiredEnvelopesSql = `SELECT envelope_id AS id FROM message_envelopes
  WHERE keep_until <= ? LIMIT ?`;

export const expiredCertificatesSql = `DELETE FROM message_certificates
  WHERE keep_until <= ? AND certificate_id IN
    (SELECT certificate_id FROM message_certificates WHERE keep_until <= ? LIMIT ?)`;

/** Removes results of both methods past their retention. */
export async function deleteExpiredResults(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  const sent = await tx.run(expiredResultsSql, now, now, batchSize);
  const received = await tx.run(expiredReceivedSql, now, now, batchSize);
  return Math.max(sent, received);
}

/**
 * Removes envelopes and certificates past their deadlines, which are never before those of the
 * records that need them: records are removed first.
 */
export async function deleteExpiredTexts(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  const envelopes = await deleteExpiredEnvelopes(tx, now, batchSize);
  const certificates = await tx.run(expiredCertificatesSql, now, now, batchSize);
  return Math.max(envelopes, certificates);
}

async function deleteExpiredEnvelopes(tx: Writer, now: number, batchSize: number): Promise<number> {
  const rows = await tx.all<{ id: string }>(expiredEnvelopesSql, now, batchSize);
  const ids = rows.map(({ id }) => id);
  let count = 0;
  for (const some of chunks(ids, largeRows)) {
    count += await tx.run(
      `DELETE FROM message_envelopes
        WHERE envelope_id IN (${placeholders(some)}) AND keep_until <= ?`,
      ...some,
      now,
    );
  }
  return count;
}

export const nextDeadlineSql = `SELECT MIN(deadline) AS deadline FROM (
  SELECT MIN(keep_until) AS deadline FROM timeline_records
  UNION ALL SELECT MIN(keep_until) FROM message_envelopes
  UNION ALL SELECT MIN(keep_until) FROM message_certificates
  UNION ALL SELECT MIN(keep_until) FROM sent_results WHERE status <> 'delivering'
  UNION ALL SELECT MIN(keep_until) FROM received_results
) AS deadlines`;

/** Returns the next deadline, or `undefined` if nothing is stored. */
export async function nextDeadline(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ deadline: number | null }>(nextDeadlineSql);
  return row?.deadline ?? undefined;
}
