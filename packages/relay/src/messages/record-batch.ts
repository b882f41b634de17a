/** Records of many messages in few statements, and what they rely on (decision record 0027). */
import type { AccountFacts } from '../known-accounts.ts';
import type { AggregateKey, BatchWriter, Row } from '../storage/types.ts';
import type { StoredMessage } from './append.ts';
import type { MessageKey } from './store.ts';

/** A message as far as its texts and records are concerned. */
interface BatchMessage extends StoredMessage {
  readonly result: { readonly acceptedAt: number };
  /** Unix seconds; `undefined` if the certificate is stored for long enough. */
  readonly certificateKeepUntil: number | undefined;
  /** Deadline of the records and the envelope, Unix seconds. */
  readonly keepUntil: number;
}

/** A timeline record with its message. */
export interface BatchRecord {
  readonly message: BatchMessage;
  readonly account: string;
  /** Canonical JSON of each visible device's box, by device ID. */
  readonly boxes: ReadonlyMap<string, string>;
}

/** Bytes of a message's rows next to its envelope, boxes and certificate. */
const otherBytes = 512;

/** Returns the bytes of a message's texts with its records. */
export function bytesOf(
  { envelope, certificate, certificateKeepUntil }: BatchMessage,
  records: readonly Pick<BatchRecord, 'boxes'>[],
): number {
  let bytes = otherBytes + envelope.bytes;
  if (certificateKeepUntil !== undefined) bytes += certificate.text.length;
  for (const { boxes } of records) for (const box of boxes.values()) bytes += box.length;
  return bytes;
}

/** Names a message in memory. */
export const nameOf = ({ sender, messageId }: MessageKey) => `${sender} ${messageId}`;

/** Selects those whose facts this process still has, and of the same message the first one. */
export function firstOfEach<M extends { readonly key: MessageKey }>(
  messages: readonly M[],
  isCurrent: (message: M) => boolean,
): readonly M[] {
  const first = new Map<string, M>();
  for (const message of messages) {
    const name = nameOf(message.key);
    if (!first.has(name) && isCurrent(message)) first.set(name, message);
  }
  return [...first.values()];
}

/** Returns the names of messages with a new result, and reports accounts that were changed. */
export function storedNames(
  rows: readonly Row[],
  changed: (aggregate: AggregateKey) => void,
): ReadonlySet<string> {
  const names = new Set<string>();
  for (const row of rows) {
    const { sender, message_id: messageId, changed: account } = row as unknown as ResultRow;
    if (account === null) names.add(nameOf({ sender, messageId }));
    else changed(`account:${account}`);
  }
  return names;
}

interface ResultRow {
  readonly sender: string;
  readonly message_id: string;
  readonly changed: string | null;
}

/**
 * A table `changed` of the accounts whose facts storage does not have; its values are {@link factValues}. Statements that
 * insert results return its rows too, for {@link storedNames}.
 */
export const changedFacts = `changed AS MATERIALIZED (
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
      )`;

/** Returns the values of {@link changedFacts}. */
export function factValues(facts: readonly AccountFacts[]) {
  return [
    facts.map(({ account }) => account),
    facts.map(({ home }) => home.relayId),
    facts.map(({ home }) => home.heldUntil),
    facts.map(({ routeRevision }) => routeRevision),
    facts.map(({ stateRevision }) => stateRevision),
    facts.map(({ isPublic }) => Number(isPublic)),
  ];
}

/**
 * Appends records, in their order, and stores the texts of their messages.
 * @returns the sequence of each; `undefined` if a timeline has too few safe integers left
 */
export async function appendRecords(
  tx: BatchWriter,
  records: readonly BatchRecord[],
): Promise<number[] | undefined> {
  const next = await moveHeads(tx, records);
  if (next === undefined) return undefined;
  const sequences = records.map(({ account }) => {
    const sequence = next.get(account) as number;
    next.set(account, sequence + 1);
    return sequence;
  });
  await Promise.all([
    insertTexts(tx, [...new Set(records.map(({ message }) => message))]),
    insertRecords(tx, records, sequences),
    insertBoxes(tx, records, sequences),
  ]);
  return sequences;
}

/**
 * Moves the head of each timeline by the number of its records.
 * @returns the first new sequence of each; `undefined` if one has too few safe integers left
 */
async function moveHeads(
  tx: BatchWriter,
  records: readonly BatchRecord[],
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

async function insertTexts(tx: BatchWriter, messages: readonly BatchMessage[]): Promise<void> {
  const certificates = new Map<string, BatchMessage>();
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
  records: readonly BatchRecord[],
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
  records: readonly BatchRecord[],
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
