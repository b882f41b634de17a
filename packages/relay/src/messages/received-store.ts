/** SQL of what this relay received: by `message.deliver`, or at once by `message.send`. */
import type { Reader, Row, Statement } from '../storage/types.ts';
import type { MessageKey, StoredResult } from './store.ts';

/** The stored acceptance of a `message.deliver` (07 §C8). */
export interface ReceivedResult {
  /** Digest of the complete parameter object. */
  readonly request: string;
  /** Digest of envelope and recipient boxes. */
  readonly content: string;
  readonly acceptedAt: number;
}

/** What is stored under a message's key. */
export interface PriorResults {
  /** Of `message.send`. */
  readonly sent: StoredResult | undefined;
  /** Of `message.deliver`. */
  readonly received: ReceivedResult | undefined;
  /**
   * Digests of envelope and recipient boxes of messages under this key that recipients received
   * here by either method, with the time of acceptance.
   */
  readonly contents: ReadonlyMap<string, number>;
}

interface PriorRow extends Row {
  method: 'send' | 'deliver';
  request: string;
  accepted_at: number;
  status: StoredResult['status'];
  error_code: string | null;
  error_message: string | null;
  content: string | null;
}

export const priorResultsSql = `SELECT 'send' AS method, request, accepted_at, status, error_code,
    error_message, received AS content
  FROM sent_results WHERE sender = ? AND message_id = ?
  UNION ALL
  SELECT 'deliver', request, accepted_at, 'target_accepted', NULL, NULL, content
  FROM received_results WHERE sender = ? AND message_id = ?`;

/** Finds the results of both methods under a message's key. */
export function priorResultsOf({ sender, messageId }: MessageKey): Statement {
  return [priorResultsSql, sender, messageId, sender, messageId];
}

/** Reads the results of both methods under a message's key. */
export async function readPriorResults(tx: Reader, key: MessageKey): Promise<PriorResults> {
  const rows = await tx.all<PriorRow>(...priorResultsOf(key));
  const sent = rows.find(({ method }) => method === 'send');
  const received = rows.find(({ method }) => method === 'deliver');
  const contents = rows.flatMap(({ content, accepted_at: at }) =>
    content === null ? [] : [[content, at] as const],
  );
  return {
    sent: sent && toSent(sent),
    received: received && {
      request: received.request,
      content: received.content ?? '',
      acceptedAt: received.accepted_at,
    },
    contents: new Map(contents),
  };
}

function toSent(row: PriorRow): StoredResult {
  const { request, accepted_at: acceptedAt, status, error_code: code } = row;
  if (code === null) return { request, acceptedAt, status };
  return { request, acceptedAt, status, error: { code, message: row.error_message ?? '' } };
}

/** Stores the acceptance of a `message.deliver`, to answer repeats until `keepUntil`. */
export function insertReceived(
  key: MessageKey,
  result: ReceivedResult & { readonly keepUntil: number },
): Statement {
  return [
    `INSERT INTO received_results (sender, message_id, request, content, accepted_at, keep_until)
      VALUES (?, ?, ?, ?, ?, ?)`,
    key.sender,
    key.messageId,
    result.request,
    result.content,
    result.acceptedAt,
    result.keepUntil,
  ];
}
