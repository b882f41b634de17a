/** All SQL of a group's timeline: management events, messages, and the results of messages. */
import type { Signer } from '../../accounts/index.ts';
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Statement, Writer } from '../../storage/types.ts';

/** An event to append. */
export interface NewEvent {
  readonly sequence: number;
  readonly epoch: number;
  readonly acceptedAt: number;
  /** Canonical JSON. */
  readonly payload: string;
}

/**
 * Stores a signer's certificate for what was accepted with it.
 * @param neededUntil Unix seconds; `null` for good
 */
export function keepCertificate(
  groupId: string,
  { signer, neededUntil }: { readonly signer: Signer; readonly neededUntil: number | null },
): Statement {
  return [
    `INSERT INTO group_certificates (group_id, certificate_id, certificate, needed_until)
      VALUES (?, ?, ?, ?)
      ON CONFLICT (group_id, certificate_id) DO UPDATE SET needed_until = excluded.needed_until
        WHERE group_certificates.needed_until < excluded.needed_until
          OR (excluded.needed_until IS NULL AND group_certificates.needed_until IS NOT NULL)`,
    groupId,
    signer.certificateId,
    signer.certificate,
    neededUntil === null ? null : wholeHour(neededUntil),
  ];
}

/** Rounds a deadline up to a whole hour, so that few messages move it. */
export function wholeHour(instant: number): number {
  return Math.ceil(instant / 3_600) * 3_600;
}

/** Appends a management event; an event without a signer was made by the relay. */
export async function insertEvent(
  tx: Writer,
  groupId: string,
  { event, signer }: { readonly event: NewEvent; readonly signer: Signer | undefined },
): Promise<void> {
  if (signer !== undefined) {
    await tx.run(...keepCertificate(groupId, { signer, neededUntil: null }));
  }
  await tx.run(
    `INSERT INTO group_events (group_id, sequence, epoch, accepted_at, signer_device_id,
        certificate_id, bytes, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    groupId,
    event.sequence,
    event.epoch,
    event.acceptedAt,
    signer?.deviceId ?? null,
    signer?.certificateId ?? null,
    Buffer.byteLength(event.payload),
    event.payload,
  );
}

/** Appends a message; {@link keepCertificate} stores its signer's certificate. */
export function insertMessage(
  groupId: string,
  {
    event,
    signer,
    keepUntil,
  }: { readonly event: NewEvent; readonly signer: Signer; readonly keepUntil: number },
): Statement {
  return [
    `INSERT INTO group_messages (group_id, sequence, epoch, accepted_at, keep_until,
        signer_device_id, certificate_id, bytes, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    groupId,
    event.sequence,
    event.epoch,
    event.acceptedAt,
    keepUntil,
    signer.deviceId,
    signer.certificateId,
    Buffer.byteLength(event.payload),
    event.payload,
  ];
}

/** One event of a page, management or message. */
export interface EventRow extends Row {
  sequence: number;
  epoch: number;
  accepted_at: number;
  signer_device_id: string | null;
  certificate_id: string | null;
  bytes: number;
  /** Canonical JSON, if it is short enough to be read with the row. */
  payload: string | null;
}

/** Which rows of a page are read with their payloads. */
interface RowLimits {
  readonly limit: number;
  /** Bytes of a payload that is read with its row. */
  readonly inline: number;
}

/** Reads management events after a sequence, ascending. */
export async function readEvents(
  tx: Reader,
  groupId: string,
  { after, limit, inline }: RowLimits & { readonly after: number },
): Promise<EventRow[]> {
  return await tx.all<EventRow>(
    `SELECT sequence, epoch, accepted_at, signer_device_id, certificate_id, bytes,
        CASE WHEN bytes <= ? THEN payload END AS payload
      FROM group_events WHERE group_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
    inline,
    groupId,
    after,
    limit,
  );
}

/** Reads messages from one sequence to another, both inclusive, ascending. */
export async function readMessages(
  tx: Reader,
  groupId: string,
  { from, to, limit, inline }: RowLimits & { readonly from: number; readonly to: number },
): Promise<EventRow[]> {
  return await tx.all<EventRow>(
    `SELECT sequence, epoch, accepted_at, signer_device_id, certificate_id, bytes,
        CASE WHEN bytes <= ? THEN payload END AS payload
      FROM group_messages WHERE group_id = ? AND sequence >= ? AND sequence <= ?
      ORDER BY sequence LIMIT ?`,
    inline,
    groupId,
    from,
    to,
    limit,
  );
}

/** Reads the Canonical JSON of events of one kind, by sequence. */
export async function readPayloads(
  tx: Reader,
  groupId: string,
  {
    sequences,
    areMessages,
  }: { readonly sequences: readonly number[]; readonly areMessages: boolean },
): Promise<ReadonlyMap<number, string>> {
  const table = areMessages ? 'group_messages' : 'group_events';
  const payloads = new Map<number, string>();
  for (const some of chunks(sequences)) {
    const rows = await tx.all<{ sequence: number; payload: string }>(
      `SELECT sequence, payload FROM ${table}
        WHERE group_id = ? AND sequence IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
    for (const { sequence, payload } of rows) payloads.set(sequence, payload);
  }
  return payloads;
}

/** Reads certificates as they were at acceptance, Canonical JSON, by ID. */
export async function readCertificates(
  tx: Reader,
  groupId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const certificates = new Map<string, string>();
  for (const some of chunks(ids)) {
    const rows = await tx.all<{ certificate_id: string; certificate: string }>(
      `SELECT certificate_id, certificate FROM group_certificates
        WHERE group_id = ? AND certificate_id IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
    for (const { certificate_id: id, certificate } of rows) certificates.set(id, certificate);
  }
  return certificates;
}

/** The result of an accepted group message. */
export interface SentResult {
  readonly groupId: string;
  readonly sequence: number;
  /** Digest of the complete envelope. */
  readonly envelope: string;
}

/** The sending account and its message ID (05 §13.28). */
export interface SentKey {
  readonly account: string;
  readonly messageId: string;
}

/** Reads the result of an accepted message. */
export async function readSent(tx: Reader, key: SentKey): Promise<SentResult | undefined> {
  return await tx.get<{ groupId: string; sequence: number; envelope: string }>(
    `SELECT group_id AS "groupId", sequence, envelope FROM group_sent
      WHERE account = ? AND message_id = ?`,
    key.account,
    key.messageId,
  );
}

/** Stores the result of an accepted message; changes no row if the message ID has a result. */
export function insertSent(
  key: SentKey,
  result: SentResult & { readonly keepUntil: number },
): Statement {
  return [
    `INSERT INTO group_sent (account, message_id, group_id, sequence, envelope, keep_until)
      VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (account, message_id) DO NOTHING`,
    key.account,
    key.messageId,
    result.groupId,
    result.sequence,
    result.envelope,
    result.keepUntil,
  ];
}
