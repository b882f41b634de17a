/**
 * Verifies a timeline page and decrypts its records, before any is applied (04 §18.1, §6.3).
 *
 * A relay checks signatures, certificates and boxes before it accepts a record. If one of them is
 * wrong, the relay is at fault: the page is refused as a whole, and the position does not move. What
 * only the reading device can check (box and payload authenticate, the plaintext is a valid object)
 * is the sender's responsibility: only that record is refused.
 */
import {
  checkEnvelope,
  checkNoNull,
  checkSchema,
  type DeviceCertificate,
  envelopeSignatures,
  type MessageDirection,
  type MessageTimelineEntry,
  messageAad,
  messageDirection,
  openKeyBox,
  openPayload,
  type ParsedContent,
  parseContent,
  sha256Text,
  TimelinePage,
  type TimelinePageRequest,
  verifyTimelinePage,
} from '@posthouse/protocol';
import { verifySignatures } from '@posthouse/protocol/crypto';
import { canonicalBytes } from '@posthouse/protocol/json';
import type { AccountCore } from '../core.ts';
import { checkRelayAnswer, type MisbehaviourReason, RelayMisbehaviour } from '../errors.ts';
import { computeInTurns } from '../sync/in-turns.ts';
import { maxSequenceStep } from '../sync/sequence-step.ts';

const method = 'message.timeline.sync';

/** A record whose envelope verified. */
export interface OpenedEntry {
  readonly entry: MessageTimelineEntry;
  readonly direction: MessageDirection;
  /** Of the complete envelope. */
  readonly digest: string;
  /** `undefined` if box or payload did not authenticate: no part of the plaintext is used. */
  readonly parsed: ParsedContent | undefined;
}

/**
 * Verifies a page and opens its records.
 * @throws RelayMisbehaviour for a page no honest relay serves
 */
export async function openPage(
  core: AccountCore,
  page: unknown,
  reading: TimelinePageRequest,
): Promise<OpenedEntry[]> {
  const fault = pageFault(page, reading);
  if (fault !== undefined) throw new RelayMisbehaviour(fault, 'page of the timeline', { method });
  const certificates = await core.network.computeAsync((network) =>
    checkRelayAnswer('page_certificates', method, () => verifyTimelinePage(network, page, reading)),
  );
  const { items } = page as TimelinePage;
  const { account, encryptionKey } = core;
  return await computeInTurns(core.network, items, (network, entry) =>
    openEntry({ network, account, encryptionKey }, entry, certificates),
  );
}

/** Returns the fault of a page that has its own reason, if any; certificates are checked later. */
function pageFault(page: unknown, reading: TimelinePageRequest): MisbehaviourReason | undefined {
  checkRelayAnswer('malformed_result', method, () => {
    checkSchema(TimelinePage, page);
    checkNoNull(page);
  });
  const { items, has_more: hasMore } = page as TimelinePage;
  if (items.length === 0 && hasMore) return 'page_without_end';
  if (items.length > (reading.limit ?? Number.POSITIVE_INFINITY)) return 'page_too_long';
  let last = reading.after;
  for (const { sequence, envelope, key_box: box } of items) {
    if (sequence <= last) return 'page_order';
    if (sequence - last > maxSequenceStep) return 'sequence_jump';
    last = sequence;
    if (envelope.from !== reading.account && envelope.to !== reading.account) {
      return 'foreign_envelope';
    }
    if (box.device_id !== reading.deviceId) return 'foreign_key_box';
  }
  return undefined;
}

/** What opening needs of the account. */
type Reader = Pick<AccountCore, 'network' | 'account' | 'encryptionKey'>;

function openEntry(
  core: Reader,
  entry: MessageTimelineEntry,
  certificates: ReadonlyMap<string, DeviceCertificate>,
): OpenedEntry {
  const { network, account } = core;
  const { envelope } = entry;
  const direction = messageDirection(envelope, account);
  const certificate = certificates.get(envelope.from_device_id);
  if (direction === undefined || certificate === undefined) {
    throw new RelayMisbehaviour('page_certificates', 'a sender has no certificate', { method });
  }
  checkRelayAnswer('altered_envelope', method, () => {
    checkEnvelope(network, envelope);
    const checks = envelopeSignatures(network, envelope, certificate);
    verifySignatures(network.primitives, checks, 'envelope');
  });
  const plaintext = decrypt(core, entry, direction === 'sent' ? envelope.from : envelope.to);
  return {
    entry,
    direction,
    digest: sha256Text(network.primitives, canonicalBytes(envelope)),
    parsed: plaintext === undefined ? undefined : parseContent(network, plaintext, { account }),
  };
}

function decrypt(
  { network, encryptionKey }: Reader,
  { envelope, key_box: box }: MessageTimelineEntry,
  account: string,
): Uint8Array | undefined {
  const key = openKeyBox(network, { envelope, account, box, encryptionPrivateKey: encryptionKey });
  if (key === undefined) return undefined;
  const aad = messageAad(network, envelope);
  return openPayload(network.primitives, envelope.payload, { key, aad });
}
