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
