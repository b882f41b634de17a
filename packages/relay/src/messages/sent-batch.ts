/** Sent messages between accounts at home here, many in few statements (decision record 0027). */
import type { AppendBatch, BatchWriter, Row } from '../storage/types.ts';
import type { SentMessage, SentSequences } from './sent-message.ts';

/** Bytes of a message's rows next to its envelope, boxes and certificate. */
const otherBytes = 512;

/** A timeline record with its message. */
interface SentRecord {
  readonly message: SentMessage;
  readonly account: string;
  readonly boxes: ReadonlyMap<string, string>;
}

/**
 * Stores messages as the single form does. Each statement is about one table; rows that batches of
 * several processes share are locked in the same order: results, heads, certificates.
 */
export const sentBatch: AppendBatch<SentMessage, SentSequences> = {
  bytes({ envelope, certificate, certificateKeepUntil, records }) {
    let bytes = otherBytes + envelope.bytes;
    if (certificateKeepUntil !== undefined) bytes += certificate.text.length;
    for (const { boxes } of records) for (const box of boxes.values()) bytes += box.length;
    return bytes;
  },
  async write(tx, messages) {
    const accepted = await insertResults(tx, unlikeMessages(messages));
    if (accepted.length === 0) return messages.map(() => undefined);
    const records = accepted.flatMap((message) =>
      message.records.map((record): SentRecord => ({ message, ...record })),
    );
    const next = await moveHeads(tx, records);
    // The general way says what is wrong.
    if (next === undefined) return undefined;
    const sequences = records.map(({ account }) => {
      const sequence = next.get(account) as number;
      next.set(account, sequence + 1);
      return sequence;
    });
    await Promise.all([
      insertTexts(tx, accepted),
      insertRecords(tx, records, sequences),
      insertBoxes(tx, records, sequences),
    ]);
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
      WITH changed AS MATERIALIZED (
        SELECT f.account
          FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
            AS f (account, relay_id, held_until, route_revision, state_revision, is_public)
          WHERE NOT EXISTS (SELECT FROM account_routes r WHERE r.account = f.account
              AND r.revision = f.route_revision AND r.relay_id = f.relay_id
              AND r.held_until = f.held_until AND r.conflict = 0)
            OR NOT EXISTS (SELECT FROM device_states s
              WHERE s.account = f.account AND s.revision = f.state_revision)
            OR f.is_public <> COALESCE(
              (SELECT p.public_discovery FROM profiles p WHERE p.account = f.account), 0)
      )
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
    facts.map(({ account }) => account),
    facts.map(({ home }) => home.relayId),
    facts.map(({ home }) => home.heldUntil),
    facts.map(({ routeRevision }) => routeRevision),
    facts.map(({ stateRevision }) => stateRevision),
    facts.map(({ isPublic }) => Number(isPublic)),
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

/**
 * Moves the head of each timeline by the number of its records.
 * @returns the first new sequence of each; `undefined` if one has too few safe integers left
 */
async function moveHeads(
  tx: BatchWriter,
  records: readonly SentRecord[],
): Promise<Map<string, number> | undefined> {
  const counts = new Map<string, number>();
  for (const { account } of records) counts.set(account, (counts.get(account) ?? 0) + 1);
  const rows = await tx.all<{ account: string; head: number }>(
    `INSERT INTO timeline_heads (account, head)
      SELECT n.account, n.last + COALESCE((SELECT floor FROM timeline_floor WHERE slot = 1), 0)
        FROM unnest(?::text[], ?::bigint[]) AS n (account, last)
        ORDER BY n.account
      ON CONFLICT (account) DO UPDATE SET head = timeline_heads.head + 1 + excluded.head
          - COALESCE((SELECT floor FROM timeline_floor WHERE slot = 1), 0)
        WHERE timeline_heads.head < ? - excluded.head
      RETURNING account, head`,
    [...counts.keys()],
    [...counts.values()].map((count) => count - 1),
    Number.MAX_SAFE_INTEGER,
  );
  if (rows.length < counts.size) return undefined;
  return new Map(
    rows.map(({ account, head }) => [account, head - (counts.get(account) as number) + 1]),
  );
}

async function insertTexts(tx: BatchWriter, messages: readonly SentMessage[]): Promise<void> {
  const certificates = new Map<string, SentMessage>();
  for (const message of messages) {
    const { certificate, certificateKeepUntil: until } = message;
    const known = certificates.get(certificate.id)?.certificateKeepUntil;
    if (until !== undefined && (known ?? 0) < until) certificates.set(certificate.id, message);
  }
  const senders = [...certificates.values()];
  await Promise.all([
    tx.run(
      `INSERT INTO message_envelopes (envelope_id, keep_until, envelope)
        SELECT e.envelope_id, e.keep_until, e.envelope
          FROM unnest(?::text[], ?::bigint[], ?::text[]) AS e (envelope_id, keep_until, envelope)
        ON CONFLICT (envelope_id) DO UPDATE SET keep_until = excluded.keep_until
          WHERE excluded.keep_until > message_envelopes.keep_until`,
      messages.map(({ envelope }) => envelope.id),
      messages.map(({ keepUntil }) => keepUntil),
      messages.map(({ envelope }) => envelope.text),
    ),
    senders.length > 0 &&
      tx.run(
        `INSERT INTO message_certificates (certificate_id, device_id, keep_until, certificate)
          SELECT c.certificate_id, c.device_id, c.keep_until, c.certificate
            FROM unnest(?::text[], ?::text[], ?::bigint[], ?::text[])
              AS c (certificate_id, device_id, keep_until, certificate)
            ORDER BY c.certificate_id
          ON CONFLICT (certificate_id) DO UPDATE SET keep_until = excluded.keep_until
            WHERE excluded.keep_until > message_certificates.keep_until`,
        senders.map(({ certificate }) => certificate.id),
        senders.map(({ certificate }) => certificate.deviceId),
        senders.map(({ certificateKeepUntil }) => certificateKeepUntil ?? 0),
        senders.map(({ certificate }) => certificate.text),
      ),
  ]);
}

async function insertRecords(
  tx: BatchWriter,
  records: readonly SentRecord[],
  sequences: readonly number[],
): Promise<void> {
  await tx.run(
    `INSERT INTO timeline_records (account, sequence, accepted_at, keep_until, envelope_id,
        certificate_id, bytes, visible_to)
      SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::text[],
        ?::bigint[], ?::text[])`,
    records.map(({ account }) => account),
    sequences,
    records.map(({ message }) => message.result.acceptedAt),
    records.map(({ message }) => message.keepUntil),
    records.map(({ message }) => message.envelope.id),
    records.map(({ message }) => message.certificate.id),
    records.map(({ message }) => message.envelope.bytes),
    records.map(({ boxes }) => [...boxes.keys()].join(' ')),
  );
}

async function insertBoxes(
  tx: BatchWriter,
  records: readonly SentRecord[],
  sequences: readonly number[],
): Promise<void> {
  const boxes = records.flatMap(({ account, boxes }, index) =>
    [...boxes].map(([deviceId, box]) => ({ account, deviceId, box, index })),
  );
  await tx.run(
    `INSERT INTO timeline_boxes (account, device_id, sequence, key_box)
      SELECT * FROM unnest(?::text[], ?::text[], ?::bigint[], ?::text[])`,
    boxes.map(({ account }) => account),
    boxes.map(({ deviceId }) => deviceId),
    boxes.map(({ index }) => sequences[index] as number),
    boxes.map(({ box }) => box),
  );
}
