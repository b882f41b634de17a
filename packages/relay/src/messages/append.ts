import { ProtocolError } from '@posthouse/protocol';
import { type Access, readCurrentDeviceIds, requireAccess } from '../accounts/index.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { Row, SyncWriter, Writer } from '../storage/types.ts';
import { certificateDeadline, visibleBoxes } from './rules.ts';
import {
  assignSequence,
  insertRecord,
  type NewRecord,
  type StoredCertificate,
  type StoredEnvelope,
  storeCertificate,
  storeEnvelope,
} from './store.ts';

/** A message without key boxes: the texts that its timeline records and deliveries refer to. */
export interface StoredMessage {
  readonly envelope: StoredEnvelope;
  readonly certificate: StoredCertificate;
}

/** The sequence of each record of a message, in their order. */
export type Sequences = readonly number[];

/** An account at home here that gets a record of a message. */
export interface Recipient {
  readonly account: string;
  /** Canonical JSON of the account's boxes, by device ID. */
  readonly boxes: ReadonlyMap<string, string>;
  /** What permits the record; `own` for the sender's record and for self-delivery. */
  readonly access: Access;
  /** Unix seconds, as `keepUntil`. */
  readonly acceptedAt: number;
  readonly keepUntil: number;
}

/** Stores the texts of a message; once in each transaction that appends or enqueues it. */
export async function storeMessage(
  tx: Writer,
  { envelope, certificate }: StoredMessage,
  keepUntil: number,
): Promise<void> {
  await tx.run(...storeEnvelope(envelope, keepUntil));
  await tx.run(...storeCertificate(certificate, certificateDeadline(keepUntil)));
}

/**
 * Appends a record to an account's timeline if the account's state permits it (04 section 13,
 * conditions 4 and 5). The record is visible to the boxed devices that are valid now, for good
 * (section 17.3).
 *
 * @returns the notice for the account's devices
 * @throws ProtocolError `forbidden`, `device_unknown`, `state_conflict`
 */
export async function appendRecord(
  tx: Writer,
  { envelope, certificate }: StoredMessage,
  { account, boxes: allBoxes, access, acceptedAt, keepUntil }: Recipient,
): Promise<Notice> {
  const current = new Set(await readCurrentDeviceIds(tx, account, acceptedAt));
  await requireAccess(tx, access, { account, current });
  const boxes = visibleBoxes(allBoxes, current);
  if (boxes.size === 0) {
    throw new ProtocolError('device_unknown', 'none of the boxed devices is valid');
  }
  const sequence = requireSequence(await tx.get(...assignSequence(account)));
  const record = {
    ...{ account, sequence, acceptedAt, keepUntil, boxes },
    envelopeId: envelope.id,
    certificateId: certificate.id,
    bytes: envelope.bytes,
  };
  for (const statement of insertRecord(record)) await tx.run(...statement);
  return { kind: 'timeline', account, head: sequence, deviceIds: [...current] };
}

/** Appends a record and returns its sequence; as {@link appendRecord}, without its checks. */
export function appendNow(tx: SyncWriter, record: Omit<NewRecord, 'sequence'>): number {
  const sequence = requireSequence(tx.get(...assignSequence(record.account)));
  for (const statement of insertRecord({ ...record, sequence })) tx.run(...statement);
  return sequence;
}

/**
 * Returns the sequence that {@link assignSequence} assigned.
 * @throws ProtocolError `state_conflict` if none was left
 */
function requireSequence(row: Row | undefined): number {
  if (row !== undefined) return row.head as number;
  throw new ProtocolError('state_conflict', 'the timeline has no sequence left');
}
