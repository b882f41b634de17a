/** Messages of other relays, many in few statements (decision record 0027). */
import type { AppendBatch, BatchWriter, Row } from '../storage/types.ts';
import type { ReceivedMessage } from './received-message.ts';
import { appendRecords, bytesOf, changedFacts, factValues } from './record-batch.ts';

/**
 * Stores messages as the single form does, in the order of tables of `sentBatch`. It also declines a
 * message whose sender is at home here, which another process may accept by `message.send` at the same
 * moment: both share the sender's lock, under which its home does not change.
 */
export const receivedBatch: AppendBatch<ReceivedMessage, number> = {
  bytes: (message) => bytesOf(message, [message]),
  async write(tx, messages) {
    const accepted = await insertResults(tx, unlikeMessages(messages));
    if (accepted.length === 0) return messages.map(() => undefined);
    const records = accepted.map((message) => {
      return { message, account: message.facts.account, boxes: message.boxes };
    });
    const sequences = await appendRecords(tx, records);
    // The general way says what is wrong.
    if (sequences === undefined) return undefined;
    const outputs = new Map(accepted.map((message, index) => [message, sequences[index]]));
    return messages.map((message) => outputs.get(message));
  },
};

const keyOf = (sender: string, messageId: string) => `${sender} ${messageId}`;

/** Selects those whose facts this process still has, and of the same message the first one. */
function unlikeMessages(messages: readonly ReceivedMessage[]): readonly ReceivedMessage[] {
  const unlike = new Map<string, ReceivedMessage>();
  for (const message of messages) {
    const key = keyOf(message.key.sender, message.key.messageId);
    if (!unlike.has(key) && message.isCurrent(message.facts)) unlike.set(key, message);
  }
  return [...unlike.values()];
}

interface ResultRow extends Row {
  sender: string;
  message_id: string;
}

/**
 * Inserts the results of messages whose facts hold in storage and of which no method has a result.
 * @returns these messages
 */
async function insertResults(
  tx: BatchWriter,
  all: readonly ReceivedMessage[],
): Promise<ReceivedMessage[]> {
  const rows = await tx.all<ResultRow>(
    `INSERT INTO received_results (sender, message_id, request, content, accepted_at, keep_until)
      WITH ${changedFacts}
      SELECT m.sender, m.message_id, m.request, m.content, m.accepted_at, m.keep_until
        FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
            ?::bigint[])
          AS m (sender, message_id, recipient, home, request, content, accepted_at, keep_until)
        WHERE NOT EXISTS (SELECT FROM changed c WHERE c.account = m.recipient)
          AND (SELECT r.relay_id FROM account_routes r
            WHERE r.account = m.sender AND r.relay_id = m.home) IS NULL
          AND (SELECT s.keep_until FROM sent_results s
            WHERE s.sender = m.sender AND s.message_id = m.message_id) IS NULL
        ORDER BY m.sender, m.message_id
      ON CONFLICT (sender, message_id) DO NOTHING
      RETURNING sender, message_id`,
    // One for each account: they are those that this process has now.
    ...factValues([...new Set(all.map(({ facts }) => facts))]),
    all.map(({ key }) => key.sender),
    all.map(({ key }) => key.messageId),
    all.map(({ facts }) => facts.account),
    all.map(({ facts }) => facts.home.relayId),
    all.map(({ result }) => result.request),
    all.map(({ result }) => result.content),
    all.map(({ result }) => result.acceptedAt),
    all.map(({ result }) => result.keepUntil),
  );
  const stored = new Set(rows.map((row) => keyOf(row.sender, row.message_id)));
  return all.filter(({ key }) => stored.has(keyOf(key.sender, key.messageId)));
}
