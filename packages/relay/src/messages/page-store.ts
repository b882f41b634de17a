/** All SQL of pages of timelines. */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row } from '../storage/types.ts';
import type { StoredCertificate } from './store.ts';

/** A device that reads its account's timeline. */
export interface TimelineReader {
  readonly account: string;
  readonly deviceId: string;
}

/** What bounds the reading of a timeline. */
export interface TimelineBounds extends Row {
  /** The highest sequence ever assigned, or -1 (04 section 17.1). */
  head: number;
  /** The highest sequence of a removed record that was visible to the device, or -1. */
  gap: number;
}

export const boundsSql = `SELECT h.head, COALESCE(g.sequence, -1) AS gap FROM timeline_heads h
  LEFT JOIN timeline_gaps g ON g.account = h.account AND g.device_id = ?
  WHERE h.account = ?`;

export async function readBounds(
  tx: Reader,
  { account, deviceId }: TimelineReader,
): Promise<TimelineBounds> {
  const found = await tx.get<TimelineBounds>(boundsSql, deviceId, account);
  return found ?? { head: -1, gap: -1 };
}

/** A record as a device may read it. */
export interface PageRow extends Row {
  sequence: number;
  accepted_at: number;
  bytes: number;
  envelope_id: string;
  certificate_id: string;
  key_box: string;
  /** Canonical JSON, if it is short enough to be read with the row. */
  envelope: string | null;
}

export const pageSql = `SELECT b.sequence, r.accepted_at, r.bytes, r.envelope_id,
    r.certificate_id, b.key_box,
    CASE WHEN r.bytes <= ?
      THEN (SELECT e.envelope FROM message_envelopes e WHERE e.envelope_id = r.envelope_id)
    END AS envelope
  FROM timeline_boxes b
  JOIN timeline_records r ON r.account = b.account AND r.sequence = b.sequence
  WHERE b.account = ? AND b.device_id = ? AND b.sequence > ?
  ORDER BY b.sequence LIMIT ?`;

/**
 * Reads records visible to a device after a sequence, ascending.
 * @param range.inline bytes of an envelope that is read with its row
 */
export async function readPage(
  tx: Reader,
  { account, deviceId }: TimelineReader,
  range: { readonly after: number; readonly limit: number; readonly inline: number },
): Promise<PageRow[]> {
  return await tx.all<PageRow>(pageSql, range.inline, account, deviceId, range.after, range.limit);
}

/** Reads canonical texts of envelopes, by ID. */
export async function readEnvelopes(
  tx: Reader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const envelopes = new Map<string, string>();
  for (const chunk of chunks(ids)) {
    const rows = await tx.all<{ envelope_id: string; envelope: string }>(
      `SELECT envelope_id, envelope FROM message_envelopes
        WHERE envelope_id IN (${placeholders(chunk)})`,
      ...chunk,
    );
    for (const { envelope_id: id, envelope } of rows) envelopes.set(id, envelope);
  }
  return envelopes;
}

/** Reads certificates, by ID. */
export async function readCertificates(
  tx: Reader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredCertificate>> {
  const certificates = new Map<string, StoredCertificate>();
  for (const chunk of chunks(ids)) {
    const rows = await tx.all<{ id: string; deviceId: string; text: string }>(
      `SELECT certificate_id AS id, device_id AS "deviceId", certificate AS text
        FROM message_certificates WHERE certificate_id IN (${placeholders(chunk)})`,
      ...chunk,
    );
    for (const certificate of rows) certificates.set(certificate.id, certificate);
  }
  return certificates;
}
