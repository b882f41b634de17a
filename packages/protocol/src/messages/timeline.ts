/** An account's timeline as its devices read it (04 §17.2, §18). */
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest } from '../errors.ts';
import {
  checkDeviceCertificate,
  DeviceCertificate,
  deriveDeviceId,
  deviceCertificateSignatures,
  type Network,
} from '../identity/index.ts';
import { Counter, checkNoNull, checkSchema, type Static, Type, UnixSeconds } from '../schema.ts';
import { MessageEnvelope } from './envelope.ts';
import { MessageKeyBox } from './key-box.ts';

/** One record, with the box of the reading device alone. */
export const MessageTimelineEntry = Type.Object({
  sequence: Counter,
  envelope: MessageEnvelope,
  key_box: MessageKeyBox,
  accepted_at: UnixSeconds,
});
export type MessageTimelineEntry = Static<typeof MessageTimelineEntry>;

/** Parameters of `message.timeline.sync`. */
export const TimelineSyncRequest = Type.Object({
  /** -1 or a sequence; the default is -1, the earliest record that is still there. */
  after: Type.Optional(Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
});
export type TimelineSyncRequest = Static<typeof TimelineSyncRequest>;

/** Result of `message.timeline.sync`. */
export const TimelinePage = Type.Object({
  items: Type.Array(MessageTimelineEntry),
  certificates: Type.Array(DeviceCertificate),
  has_more: Type.Boolean(),
  has_retention_gap: Type.Optional(Type.Boolean()),
});
export type TimelinePage = Static<typeof TimelinePage>;

/** Parameters of the notification `message.timeline.changed`. */
export const TimelineChanged = Type.Object({ head: Counter });
export type TimelineChanged = Static<typeof TimelineChanged>;

/** The reading device, and the page it requested. */
export interface TimelinePageRequest {
  readonly account: string;
  readonly deviceId: string;
  /** The position asked for; -1 for the beginning. */
  readonly after: number;
  /** The page size asked for, if any. */
  readonly limit?: number;
}

/**
 * Verifies a page as a whole, before any record of it is processed (04 §18.1): ascending sequences
 * after the position, records of this account for this device, and certificates that verify, belong
 * to the senders and leave none out. Each record is then `openMessage`.
 *
 * @returns the sending devices' certificates by device ID
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * const request = { account, deviceId: device.deviceId, after: -1 };
 * const certificates = verifyTimelinePage(network, page, request);
 */
export function verifyTimelinePage(
  network: Network,
  page: unknown,
  reading: TimelinePageRequest,
): Map<string, DeviceCertificate> {
  const certificates = checkTimelinePage(network, page, reading);
  for (const certificate of certificates.values()) {
    const checks = deviceCertificateSignatures(network, certificate);
    verifySignatures(network.primitives, checks, 'certificate');
  }
  return certificates;
}

/**
 * Checks a page as {@link verifyTimelinePage}, without the signatures of the certificates.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * const request = { account, deviceId: device.deviceId, after: -1 };
 * const certificates = checkTimelinePage(network, page, request);
 */
export function checkTimelinePage(
  network: Network,
  page: unknown,
  reading: TimelinePageRequest,
): Map<string, DeviceCertificate> {
  checkSchema(TimelinePage, page);
  checkNoNull(page);
  const { items, has_more: hasMore } = page;
  if (items.length === 0 && hasMore) throw badRequest('has_more', 'true on an empty page');
  if (reading.limit !== undefined && items.length > reading.limit) {
    throw badRequest('items', `more than ${reading.limit}`);
  }
  checkEntries(items, reading);
  const certificates = certificatesById(network, page.certificates);
  for (const [index, { envelope }] of items.entries()) {
    const certificate = certificates.get(envelope.from_device_id);
    if (certificate?.account !== envelope.from) {
      throw badRequest(`items.${index}`, "the page lacks the sender's certificate");
    }
  }
  return certificates;
}

function checkEntries(items: readonly MessageTimelineEntry[], reading: TimelinePageRequest): void {
  let last = reading.after;
  for (const [index, { sequence, envelope, key_box: box }] of items.entries()) {
    const path = `items.${index}`;
    if (sequence <= last) throw badRequest(`${path}.sequence`, `not above ${last}`);
    last = sequence;
    if (envelope.from !== reading.account && envelope.to !== reading.account) {
      throw badRequest(`${path}.envelope`, 'neither from nor to the account');
    }
    if (box.device_id !== reading.deviceId) {
      throw badRequest(`${path}.key_box.device_id`, 'another device');
    }
  }
}

function certificatesById(
  network: Network,
  certificates: readonly DeviceCertificate[],
): Map<string, DeviceCertificate> {
  const byId = new Map<string, DeviceCertificate>();
  for (const [index, certificate] of certificates.entries()) {
    const path = `certificates.${index}`;
    checkDeviceCertificate(network, certificate, path);
    const deviceId = deriveDeviceId(network, certificate);
    if (byId.has(deviceId)) throw badRequest(path, 'repeats a device');
    byId.set(deviceId, certificate);
  }
  return byId;
}
