/**
 * SQL that stores envelopes, certificates and records, and SQL of the results of `message.send`;
 * page-store.ts reads pages, queue-store.ts has the queue.
 */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, SqlValue, Statement, Writer } from '../storage/types.ts';

/** An envelope as stored. */
export interface StoredEnvelope {
  /** Its time and the digest of its text: see `envelopeId`. */
  readonly id: string;
  /** Canonical JSON. */
  readonly text: string;
  /** UTF-8 of the text. */
  readonly bytes: number;
}

/** Stores an envelope at least until `keepUntil`. */
export function storeEnvelope(envelope: StoredEnvelope, keepUntil: number): Statement {
  return [
    `INSERT INTO message_envelopes (envelope_id, keep_until, envelope) VALUES (?, ?, ?)
      ON CONFLICT (envelope_id) DO UPDATE SET keep_until = excluded.keep_until
        WHERE excluded.keep_until > message_envelopes.keep_until`,
    envelope.id,
    keepUntil,
    envelope.text,
  ];
}

export async function readEnvelope(tx: Reader, id: string): Promise<string | undefined> {
  const row = await tx.get<{ envelope: string }>(
    'SELECT envelope FROM message_envelopes WHERE envelope_id = ?',
    id,
  );
  return row?.envelope;
}

/** A sender's certificate as stored: canonical text under its digest. */
export interface StoredCertificate {
  readonly id: string;
  readonly deviceId: string;
  readonly text: string;
}

/** Stores a certificate at least until `keepUntil`. */
export function storeCertificate(certificate: StoredCertificate, keepUntil: number): Statement {
  return [
    `INSERT INTO message_certificates (certificate_id, device_id, keep_until, certificate)
      VALUES (?, ?, ?, ?)
      ON CONFLICT (certificate_id) DO UPDATE SET keep_until = excluded.keep_until
        WHERE excluded.keep_until > message_certificates.keep_until`,
    certificate.id,
    certificate.deviceId,
    keepUntil,
    certificate.text,
  ];
}

export async function readCertificate(
  tx: Reader,
  id: string,
): Promise<StoredCertificate | undefined> {
  return await tx.get<{ id: string; deviceId: string; text: string }>(
    `SELECT certificate_id AS id, device_id AS "deviceId", certificate AS text
      FROM message_certificates WHERE certificate_id = ?`,
    id,
  );
}

/** Reads the heads of those timelines that ever had a record. */
export async function readHeads(
  tx: Reader,
  accounts: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const heads = new Map<string, number>();
  for (const chunk of chunks(accounts)) {
    const rows = await tx.all<{ account: string; head: number }>(
      `SELECT account, head FROM timeline_heads WHERE account IN (${placeholders(chunk)})`,
      ...chunk,
    );
    for (const { account, head } of rows) heads.set(account, head);
  }
  return heads;
}

/**
 * Assigns the next sequence of a timeline and moves its head there; returns a row with the `head`,
 * or none if no safe integer is left.
 */
export function assignSequence(account: string): Statement {
  return [
    `INSERT INTO timeline_heads (account, head)
      VALUES (?, COALESCE((SELECT floor FROM timeline_floor WHERE slot = 1), 0))
      ON CONFLICT (account) DO UPDATE SET head = timeline_heads.head + 1
        WHERE timeline_heads.head < ?
      RETURNING head`,
    account,
    Number.MAX_SAFE_INTEGER,
  ];
}

/** A timeline record to append. */
export interface NewRecord {
  readonly account: string;
  readonly sequence: number;
  readonly acceptedAt: number;
  readonly keepUntil: number;
  readonly envelopeId: string;
  readonly certificateId: string;
  /** UTF-8 of the envelope. */
  readonly bytes: number;
  /** Canonical JSON of each visible device's box, by device ID. */
  readonly boxes: ReadonlyMap<string, string>;
}

/** Appends a record and its boxes: a statement for the record, and one for each box. */
export function insertRecord(record: NewRecord): Statement[] {
  const { account, sequence, boxes } = record;
  const boxStatements = [...boxes].map(
    ([deviceId, keyBox]): Statement => [
      `INSERT INTO timeline_boxes (account, device_id, sequence, key_box) VALUES (?, ?, ?, ?)`,
      ...[account, deviceId, sequence, keyBox],
    ],
  );
  return [
    [
      `INSERT INTO timeline_records (account, sequence, accepted_at, keep_until, envelope_id,
          certificate_id, bytes, visible_to)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      account,
      sequence,
      record.acceptedAt,
      record.keepUntil,
      record.envelopeId,
      record.certificateId,
      record.bytes,
      [...boxes.keys()].join(' '),
    ],
    ...boxStatements,
  ];
}

/** `DeliveryStatus` as stored (04 section 14.1). */
export interface StoredResult {
  /** Digest of the complete parameter object. */
  readonly request: string;
  readonly acceptedAt: number;
  readonly status: 'delivering' | 'target_accepted' | 'failed';
  readonly error?: { readonly code: string; readonly message: string };
}

/** The logical key of a message: its sender and its ID (04 section 15.1). */
export interface MessageKey {
  readonly sender: string;
  readonly messageId: string;
}

/** The first result of an accepted message. */
export interface NewResult extends Pick<StoredResult, 'request' | 'acceptedAt' | 'status'> {
  readonly keepUntil: number;
  /** Digest of envelope and recipient boxes if the recipient received them here. */
  readonly received: string | undefined;
}

/** Stores the first result of a `message.send`; changes nothing if it has one. */
export function insertResult(key: MessageKey, result: NewResult): Statement {
  return [
    `INSERT INTO sent_results ${columnsOfResult} VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (sender, message_id) DO NOTHING`,
    ...valuesOfResult(key, result),
  ];
}

/** As {@link insertResult}; changes nothing either if a `message.deliver` with this key was accepted. */
export function insertResultUnlessDelivered(key: MessageKey, result: NewResult): Statement {
  return [
    `INSERT INTO sent_results ${columnsOfResult} SELECT ?, ?, ?, ?, ?, ?, ?
      WHERE NOT EXISTS (SELECT 1 FROM received_results WHERE sender = ? AND message_id = ?)
      ON CONFLICT (sender, message_id) DO NOTHING`,
    ...valuesOfResult(key, result),
    key.sender,
    key.messageId,
  ];
}

const columnsOfResult = '(sender, message_id, request, accepted_at, keep_until, status, received)';

function valuesOfResult({ sender, messageId }: MessageKey, result: NewResult): SqlValue[] {
  const { request, acceptedAt, keepUntil, status, received } = result;
  return [sender, messageId, request, acceptedAt, keepUntil, status, received ?? null];
}

/** How a delivery ended. */
export interface DeliveryEnd {
  /** With a failure, and only then. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Digest of envelope and recipient boxes if the recipient received them here. */
  readonly received?: string;
}

/** Stores the terminal result of a delivery; an earlier terminal result stays (04 section 14.2). */
export async function endResult(
  tx: Writer,
  key: MessageKey,
  { error, received }: DeliveryEnd = {},
): Promise<void> {
  await tx.run(
    `UPDATE sent_results SET status = ?, error_code = ?, error_message = ?, received = ?
      WHERE sender = ? AND message_id = ? AND status = 'delivering'`,
    error === undefined ? 'target_accepted' : 'failed',
    error?.code ?? null,
    error?.message ?? null,
    received ?? null,
    key.sender,
    key.messageId,
  );
}
