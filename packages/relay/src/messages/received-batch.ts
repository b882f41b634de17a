/** The results of other relays' messages, many in one statement (decision record 0027). */
import type { AggregateKey, BatchWriter } from '../storage/types.ts';
import type { ReceivedMessage } from './received-message.ts';
import { changedFacts, factValues, firstOfEach, nameOf, storedNames } from './record-batch.ts';

/**
 * Inserts the results of messages whose facts hold in storage and of which no method has a result; of
 * the same message it is the first one. It also declines a message whose sender is at home here,
 * which another process may accept by `message.send` at the same moment: both share the sender's lock,
 * under which its home does not change.
 *
 * @returns the messages of these results
 */
export async function insertReceivedResults(
  tx: BatchWriter,
  messages: readonly ReceivedMessage[],
  changed: (aggregate: AggregateKey) => void,
): Promise<ReceivedMessage[]> {
  const all = firstOfEach(messages, (message) => message.isCurrent(message.facts));
  if (all.length === 0) return [];
  const rows = await tx.all(
    `WITH ${changedFacts}, stored AS (INSERT INTO received_results
          (sender, message_id, request, content, accepted_at, keep_until)
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
        RETURNING sender, message_id)
      SELECT sender, message_id, NULL AS changed FROM stored
      UNION ALL SELECT NULL, NULL, account FROM changed`,
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
  const stored = storedNames(rows, changed);
  return all.filter(({ key }) => stored.has(nameOf(key)));
}
