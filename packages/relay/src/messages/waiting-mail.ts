import type { Reader, Row } from '../storage/types.ts';
import type { MessageKey } from './store.ts';

/** A queued message, as metrics and operators count it. */
export interface WaitingMessage extends MessageKey {
  /** ID of the relay that it waits for; empty for a recipient that is not located. */
  readonly destination: string;
  /** Unix seconds. */
  readonly acceptedAt: number;
}

/** Reads queued messages after a given one, in a fixed order. */
export async function readWaitingMessages(
  tx: Reader,
  { after, limit }: { readonly after: MessageKey | undefined; readonly limit: number },
): Promise<WaitingMessage[]> {
  return await tx.all<Row & WaitingMessage>(
    `SELECT d.sender, d.message_id AS "messageId", s.accepted_at AS "acceptedAt",
        d.destination
      FROM deliveries d
        JOIN sent_results s ON s.sender = d.sender AND s.message_id = d.message_id
      WHERE (d.sender, d.message_id) > (?, ?)
      ORDER BY d.sender, d.message_id LIMIT ?`,
    after?.sender ?? '',
    after?.messageId ?? '',
    limit,
  );
}

/** Mail that waits for one relay. */
export interface WaitingMail {
  /** No more than were to be counted. */
  readonly messages: number;
  /** When the oldest of the counted ones was accepted, Unix seconds. */
  readonly oldest: number;
  /** Whether there are others. */
  readonly hasMore: boolean;
}

export const destinationsSql = `WITH RECURSIVE lanes (destination) AS (
    SELECT MIN(destination) FROM deliveries WHERE destination >= ? AND destination > ''
    UNION ALL
    SELECT (SELECT MIN(d.destination) FROM deliveries d WHERE d.destination > lanes.destination)
      FROM lanes WHERE lanes.destination IS NOT NULL
  )
  SELECT destination FROM lanes WHERE destination IS NOT NULL LIMIT ?`;

/**
 * Reads the relays for which mail waits, in the order of their IDs, by one step along an index each,
 * however much waits.
 */
export async function readDestinations(
  tx: Reader,
  { from, limit }: { readonly from: string; readonly limit: number },
): Promise<string[]> {
  const rows = await tx.all<Row & { destination: string }>(destinationsSql, from, limit);
  return rows.map(({ destination }) => destination);
}

export const waitingMailSql = `SELECT COUNT(*) AS messages, MIN(accepted_at) AS oldest
  FROM (SELECT s.accepted_at FROM deliveries d
      JOIN sent_results s ON s.sender = d.sender AND s.message_id = d.message_id
    WHERE d.destination = ? LIMIT ?) AS counted_mail`;

/** Counts the mail that waits for a relay, up to a limit; `undefined` if there is none. */
export async function readWaitingMail(
  tx: Reader,
  destination: string,
  limit: number,
): Promise<WaitingMail | undefined> {
  const row = await tx.get<Row & { messages: number; oldest: number | null }>(
    waitingMailSql,
    destination,
    limit + 1,
  );
  if (row === undefined || row.oldest === null) return undefined;
  const { messages, oldest } = row;
  return { messages: Math.min(messages, limit), oldest, hasMore: messages > limit };
}
