import { ProtocolError } from '@posthouse/protocol';
import { type Access, readCurrentDeviceIds, requireAccess } from '../accounts/index.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { Writer } from '../storage/types.ts';
import { certificateDeadline, visibleBoxes } from './rules.ts';
import {
  assignSequence,
  insertRecord,
  type StoredCertificate,
  type StoredEnvelope,
  storeCertificate,
  storeEnvelope,
} from './store.ts';

/** What timelines show of a message beside the boxes. */
export interface Message {
  readonly envelope: StoredEnvelope;
  readonly certificate: StoredCertificate;
}

/** One account's part in a message. */
export interface Part {
  readonly account: string;
  /** Canonical JSON of the account's boxes, by device ID. */
  readonly boxes: ReadonlyMap<string, string>;
  /** Unix seconds, of acceptance. */
  readonly now: number;
  readonly keepUntil: number;
}

/**
 * Takes a message in for an account at home here, under the conditions that depend on its state
 * (04 section 13, conditions 4 and 5).
 *
 * @param access what the sender brought; `undefined` for self-delivery
 * @throws ProtocolError `forbidden`, `device_unknown`, `state_conflict`; nothing is appended then
 */
export async function receive(
  tx: Writer,
  message: Message,
  { access, ...part }: Part & { readonly access: Access | undefined },
): Promise<Notice> {
  const current = await currentDevicesOf(tx, part);
  if (access !== undefined) await requireAccess(tx, access, { account: part.account, current });
  return await append(tx, message, { ...part, current });
}

/**
 * Appends the sender's record of a message it sent.
 * @throws ProtocolError `device_unknown`, `state_conflict`
 */
export async function keepSent(tx: Writer, message: Message, part: Part): Promise<Notice> {
  return await append(tx, message, { ...part, current: await currentDevicesOf(tx, part) });
}

async function currentDevicesOf(
  tx: Writer,
  { account, now }: Pick<Part, 'account' | 'now'>,
): Promise<ReadonlySet<string>> {
  return new Set(await readCurrentDeviceIds(tx, account, now));
}

/** Appends one record, visible to those boxed devices that are valid now, for good (17.3). */
async function append(
  tx: Writer,
  message: Message,
  part: Part & { readonly current: ReadonlySet<string> },
): Promise<Notice> {
  const { account, now, keepUntil, current } = part;
  const boxes = visibleBoxes(part.boxes, current);
  if (boxes.size === 0) {
    throw new ProtocolError('device_unknown', 'none of the boxed devices is valid');
  }
  const sequence = await assignSequence(tx, account);
  if (sequence === undefined) {
    throw new ProtocolError('state_conflict', 'the timeline has no sequence left');
  }
  await insertRecord(tx, {
    account,
    sequence,
    acceptedAt: now,
    keepUntil,
    envelopeId: message.envelope.id,
    certificateId: message.certificate.id,
    bytes: message.envelope.bytes,
    boxes,
  });
  return { kind: 'timeline', account, head: sequence, deviceIds: [...current] };
}

/** Keeps what records and queued deliveries refer to; once for each transaction that adds some. */
export async function keepMessage(
  tx: Writer,
  { envelope, certificate }: Message,
  keepUntil: number,
): Promise<void> {
  await storeEnvelope(tx, envelope, keepUntil);
  await storeCertificate(tx, certificate, certificateDeadline(keepUntil));
}
