import type { Reader, Row } from '../storage/types.ts';
import type { MessageKey } from './store.ts';

/** Messages that wait for one relay. */
export interface WaitingMail {
  /** Relay ID; empty for recipients that are not located. */
  readonly destination: string;
  readonly messages: number;
  /** Unix second at which the oldest one was accepted. */
  readonly oldest: number;
}

/** Counts the delivery queue by destination. Reads all of it: for operators' commands only. */
export async function readWaitingMail(tx: Reader): Promise<WaitingMail[]> {
  return await tx.all<Row & WaitingMail>(
    `SELECT d.destination, COUNT(*) AS messages, MIN(s.accepted_at) AS oldest
      FROM deliveries d
        JOIN sent_results s ON s.sender = d.sender AND s.message_id = d.message_id
      GROUP BY d.destination ORDER BY d.destination`,
  );
}

/** A queued message, as the metrics count it. */
export interface WaitingMessage extends MessageKey {
  /** Unix seconds. */
  readonly acceptedAt: number;
}

/** Reads queued messages after a given one, in a fixed order. */
export async function readWaitingMessages(
  tx: Reader,
  { after, limit }: { readonly after: MessageKey | undefined; readonly limit: number },
): Promise<WaitingMessage[]> {
  return await tx.all<Row & { sender: string; messageId: string; acceptedAt: number }>(
    `SELECT d.sender, d.message_id AS "messageId", s.accepted_at AS "acceptedAt"
      FROM deliveries d
        JOIN sent_results s ON s.sender = d.sender AND s.message_id = d.message_id
      WHERE (d.sender, d.message_id) > (?, ?)
      ORDER BY d.sender, d.message_id LIMIT ?`,
    after?.sender ?? '',
    after?.messageId ?? '',
    limit,
  );
}
