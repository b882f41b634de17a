/** All SQL of a channel's timeline: events and the certificates of their signers. */
import type { Signer } from '../accounts/index.ts';
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, Statement, Writer } from '../storage/types.ts';

type EventKind = 'descriptor' | 'post' | 'edit' | 'delete';

/** An event to append. */
export interface NewEvent {
  readonly kind: EventKind;
  readonly sequence: number;
  readonly descriptorRev: number;
  /** The post of an edit or a deletion. */
  readonly target?: number;
  readonly acceptedAt: number;
  /** Deadline fixed at acceptance, Unix seconds (06 §7.5). */
  readonly keepUntil: number;
  /** When a job removes a deletion. Posts and edits are removed with the post's row. */
  readonly clearAfter?: number;
  /** Canonical JSON. */
  readonly payload: string;
}

/** Appends an event with its signer's certificate. */
export async function insertEvent(
  tx: Writer,
  channelId: string,
  { event, signer }: { readonly event: NewEvent; readonly signer: Signer },
): Promise<void> {
  await tx.run(...keepCertificate(channelId, signer));
  await tx.run(...eventStatement(channelId, { event, signer }));
}

/** Stores a device's certificate if there is none of it: any version verifies (06 §5.2). */
export function keepCertificate(channelId: string, signer: Signer): Statement {
  return [
    `INSERT INTO channel_certificates (channel_id, device_id, certificate) VALUES (?, ?, ?)
      ON CONFLICT (channel_id, device_id) DO NOTHING`,
    channelId,
    signer.deviceId,
    signer.certificate,
  ];
}

/** Makes the statement that appends an event; {@link keepCertificate} stores the certificate. */
export function eventStatement(
  channelId: string,
  { event, signer }: { readonly event: NewEvent; readonly signer: Signer },
): Statement {
  return [
    `INSERT INTO channel_events (channel_id, sequence, kind, descriptor_rev, target, accepted_at,
        keep_until, clear_after, signer_device_id, bytes, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    channelId,
    event.sequence,
    event.kind,
    event.descriptorRev,
    event.target ?? null,
    event.acceptedAt,
    event.keepUntil,
    event.clearAfter ?? null,
    signer.deviceId,
    Buffer.byteLength(event.payload),
    event.payload,
  ];
}

/**
 * Sets the deadline of a descriptor that is not the current one any more: the later of its own and
 * of the content accepted under it (06 §7.5).
 */
export async function supersedeDescriptor(
  tx: Writer,
  channelId: string,
  { revision, neededUntil }: { readonly revision: number; readonly neededUntil: number },
): Promise<void> {
  await tx.run(
    `UPDATE channel_events
      SET clear_after = CASE WHEN keep_until > ? THEN keep_until ELSE ? END
      WHERE channel_id = ? AND kind = 'descriptor' AND descriptor_rev = ?`,
    neededUntil,
    neededUntil,
    channelId,
    revision,
  );
}

/** Reads the descriptor of a revision with its signer's certificate; `undefined` if not stored. */
export async function readDescriptor(
  tx: Reader,
  channelId: string,
  revision: number,
): Promise<{ readonly descriptor: string; readonly certificate: string } | undefined> {
  return await tx.get<{ descriptor: string; certificate: string }>(
    `SELECT e.payload AS descriptor, c.certificate FROM channel_events e
      JOIN channel_certificates c
        ON c.channel_id = e.channel_id AND c.device_id = e.signer_device_id
      WHERE e.channel_id = ? AND e.kind = 'descriptor' AND e.descriptor_rev = ?`,
    channelId,
    revision,
  );
}

/** The signer of an event. */
interface SignerRow extends Row {
  signer_device_id: string;
}

/** One event of a page. */
export interface EventRow extends SignerRow {
  sequence: number;
  descriptor_rev: number;
  accepted_at: number;
  bytes: number;
  /** Canonical JSON, if it is short enough to be read with the row. */
  payload: string | null;
}

/** Rows of a page after or up to a sequence. */
interface RowRange {
  readonly limit: number;
  /** Bytes of a payload that is read with its row. */
  readonly inline: number;
}

/**
 * Edits are readable as long as their post is; they are removed in batches after it was removed or
 * withheld (06 §7.3, §7.5).
 */
const readable = `(e.kind <> 'edit' OR EXISTS (SELECT 1 FROM channel_posts p
  WHERE p.channel_id = e.channel_id AND p.sequence = e.target
    AND p.status = 'readable' AND p.withheld_at IS NULL))`;
const columns = `e.sequence, e.descriptor_rev, e.accepted_at, e.signer_device_id, e.bytes,
  CASE WHEN e.bytes <= ? THEN e.payload END AS payload`;

/** Reads readable events above a sequence, ascending. */
export async function readAfter(
  tx: Reader,
  channelId: string,
  { after, limit, inline }: RowRange & { readonly after: number },
): Promise<EventRow[]> {
  return await tx.all<EventRow>(
    `SELECT ${columns} FROM channel_events e
      WHERE e.channel_id = ? AND e.sequence > ? AND ${readable} ORDER BY e.sequence LIMIT ?`,
    inline,
    channelId,
    after,
    limit,
  );
}

/** Reads readable events up to and including a sequence, descending. */
export async function readUpTo(
  tx: Reader,
  channelId: string,
  { last, limit, inline }: RowRange & { readonly last: number },
): Promise<EventRow[]> {
  return await tx.all<EventRow>(
    `SELECT ${columns} FROM channel_events e
      WHERE e.channel_id = ? AND e.sequence <= ? AND ${readable} ORDER BY e.sequence DESC LIMIT ?`,
    inline,
    channelId,
    last,
    limit,
  );
}

/** Reads payloads of events as Canonical JSON, by sequence. */
export async function readPayloads(
  tx: Reader,
  channelId: string,
  sequences: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const payloads = new Map<number, string>();
  for (const chunk of chunks(sequences)) {
    const rows = await tx.all<{ sequence: number; payload: string }>(
      `SELECT sequence, payload FROM channel_events
        WHERE channel_id = ? AND sequence IN (${placeholders(chunk)})`,
      channelId,
      ...chunk,
    );
    for (const { sequence, payload } of rows) payloads.set(sequence, payload);
  }
  return payloads;
}

/** Reads certificates of devices that signed events of a channel, Canonical JSON, by device ID. */
export async function readCertificates(
  tx: Reader,
  channelId: string,
  deviceIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const certificates = new Map<string, string>();
  for (const chunk of chunks(deviceIds)) {
    const rows = await tx.all<{ device_id: string; certificate: string }>(
      `SELECT device_id, certificate FROM channel_certificates
        WHERE channel_id = ? AND device_id IN (${placeholders(chunk)})`,
      channelId,
      ...chunk,
    );
    for (const { device_id: id, certificate } of rows) certificates.set(id, certificate);
  }
  return certificates;
}

/**
 * Tells whether a position has an event that is no post. Posts have a row of their own and do not
 * count.
 */
export async function hasOtherEvent(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<boolean> {
  const found = await tx.get(
    `SELECT sequence FROM channel_events
      WHERE channel_id = ? AND sequence = ? AND kind <> 'post'`,
    channelId,
    sequence,
  );
  return found !== undefined;
}
