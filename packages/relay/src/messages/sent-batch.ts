/** The results of sent messages between accounts at home here, many in one statement (decision record 0027). */
import type { AggregateKey, BatchWriter } from '../storage/types.ts';
import { changedFacts, factValues, firstOfEach, nameOf, storedNames } from './record-batch.ts';
import type { SentMessage } from './sent-message.ts';

/**
 * Inserts the results of messages whose facts hold in storage and of which no method has a result; of
 * the same message it is the first one.
 *
 * @returns the messages of these results
 */
export async function insertSentResults(
  tx: BatchWriter,
  messages: readonly SentMessage[],
  changed: (aggregate: AggregateKey) => void,
): Promise<SentMessage[]> {
  const all = firstOfEach(messages, (message) => message.facts.every(message.isCurrent));
  if (all.length === 0) return [];
  const rows = await tx.all(
    `WITH ${changedFacts}, stored AS (INSERT INTO sent_results
          (sender, message_id, request, accepted_at, keep_until, status, received)
        SELECT m.sender, m.message_id, m.request, m.accepted_at, m.keep_until, 'target_accepted',
            m.received
          FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[])
            AS m (sender, message_id, recipient, request, accepted_at, keep_until, received)
          WHERE NOT EXISTS (SELECT FROM changed c WHERE c.account IN (m.sender, m.recipient))
            AND (SELECT r.keep_until FROM received_results r
              WHERE r.sender = m.sender AND r.message_id = m.message_id) IS NULL
          ORDER BY m.sender, m.message_id
        ON CONFLICT (sender, message_id) DO NOTHING
        RETURNING sender, message_id)
      SELECT sender, message_id, NULL AS changed FROM stored
      UNION ALL SELECT NULL, NULL, account FROM changed`,
    // One for each account: they are those that this process has now.
    ...factValues([...new Set(all.flatMap((message) => message.facts))]),
    all.map(({ key }) => key.sender),
    all.map(({ key }) => key.messageId),
    all.map(({ records }) => records.at(-1)?.account ?? ''),
    all.map(({ result }) => result.request),
    all.map(({ result }) => result.acceptedAt),
    all.map(({ result }) => result.keepUntil),
    all.map(({ result }) => result.received ?? null),
  );
  const stored = storedNames(rows, changed);
  return all.filter(({ key }) => stored.has(nameOf(key)));
}
