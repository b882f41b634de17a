import type { Reader, Row } from '../storage/types.ts';

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
