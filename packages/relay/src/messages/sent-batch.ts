/** Sent messages between accounts at home here, many in few statements (decision record 0027). */
import type { AppendBatch, BatchWriter, Row } from '../storage/types.ts';
import { appendRecords, bytesOf, changedFacts, factValues } from './record-batch.ts';
import type { SentMessage, SentSequences } from './sent-message.ts';

/**
 * Stores messages as the single form does. Each statement is about one table; rows that batches of
 * several processes share are locked in the same order: results, heads, certificates.
 */
export const sentBatch: AppendBatch<SentMessage, SentSequences> = {
  bytes: (message) => bytesOf(message, message.records),
  async write(tx, messages) {
    const accepted = await insertResults(tx, unlikeMessages(messages));
    if (accepted.length === 0) return messages.map(() => undefined);
    const records = accepted.flatMap((message) =>
      message.records.map((record) => ({ message, ...record })),
    );
    const sequences = await appendRecords(tx, records);
    // The general way says what is wrong.
    if (sequences === undefined) return undefined;
    const outputs = new Map<SentMessage, number[]>(accepted.map((message) => [message, []]));
    for (const [index, { message }] of records.entries()) {
      outputs.get(message)?.push(sequences[index] as number);
    }
    return messages.map((message) => outputs.get(message));
  },
};

const keyOf = (sender: string, messageId: string) => `${sender} ${messageId}`;

/** Selects those whose facts this process still has, and of the same message the first one. */
function unlikeMessages(messages: readonly SentMessage[]): ReadonlyMap<string, SentMessage> {
  const unlike = new Map<string, SentMessage>();
  for (const message of messages) {
    const key = keyOf(message.key.sender, message.key.messageId);
    if (!unlike.has(key) && message.facts.every(message.isCurrent)) unlike.set(key, message);
  }
  return unlike;
}

/**
 * Inserts the results of messages whose facts hold in storage and of which no method has a result.
 * @returns these messages
 */
async function insertResults(
  tx: BatchWriter,
  messages: ReadonlyMap<string, SentMessage>,
): Promise<SentMessage[]> {
  const all = [...messages.values()];
  // One for each account: they are those that this process has now.
  const facts = [...new Set(all.flatMap((message) => message.facts))];
  const rows = await tx.all<ResultRow>(
    `INSERT INTO sent_results (sender, message_id, request, accepted_at, keep_until, status,
        received)
      WITH ${changedFacts}
      SELECT m.sender, m.message_id, m.request, m.accepted_at, m.keep_until, 'target_accepted',
          m.received
        FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[])
          AS m (sender, message_id, recipient, request, accepted_at, keep_until, received)
        WHERE NOT EXISTS (SELECT FROM changed c WHERE c.account IN (m.sender, m.recipient))
          AND (SELECT r.keep_until FROM received_results r
            WHERE r.sender = m.sender AND r.message_id = m.message_id) IS NULL
        ORDER BY m.sender, m.message_id
      ON CONFLICT (sender, message_id) DO NOTHING
      RETURNING sender, message_id`,
    ...factValues(facts),
    all.map(({ key }) => key.sender),
    all.map(({ key }) => key.messageId),
    all.map(({ records }) => records.at(-1)?.account ?? ''),
    all.map(({ result }) => result.request),
    all.map(({ result }) => result.acceptedAt),
    all.map(({ result }) => result.keepUntil),
    all.map(({ result }) => result.received ?? null),
  );
  const stored = new Set(rows.map((row) => keyOf(row.sender, row.message_id)));
  return all.filter(({ key }) => stored.has(keyOf(key.sender, key.messageId)));
}

interface ResultRow extends Row {
  sender: string;
  message_id: string;
}
