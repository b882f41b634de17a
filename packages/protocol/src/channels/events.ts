import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import { DeviceCertificate, verifyDeviceCertificate } from '../identity/certificate.ts';
import { deriveDeviceId } from '../identity/device-id.ts';
import { deviceSignatures } from '../identity/device-signed.ts';
import type { Network } from '../identity/network.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';
import {
  Counter,
  checkSchema,
  DeviceId,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import {
  type ChannelContent,
  type ChannelPost,
  type ChannelPostDelete,
  type ChannelPostEdit,
  checkChannelContentSize,
  checkChannelPost,
  checkChannelPostDelete,
  checkChannelPostEdit,
} from './content.ts';
import {
  ChannelDescriptor,
  checkChannelDescriptor,
  checkChannelDescriptorSize,
  checkInitialDescriptor,
  mayWriteChannel,
} from './descriptor.ts';
import { checkChannelId } from './ids.ts';

/**
 * One entry of a channel's timeline. Everything outside `payload` is the host's claim and part of
 * no signature (06 §5.1).
 */
export const ChannelEvent = Type.Object({
  sequence: Counter,
  descriptor_rev: Counter,
  payload: Type.Object({ $type: TypeName }),
  accepted_at: UnixSeconds,
  signer_device_id: DeviceId,
});
export type ChannelEvent = Static<typeof ChannelEvent>;

/** Result of `channel.read` (06 §8.11). */
export const ChannelPage = Type.Object({
  events: Type.Array(ChannelEvent),
  certificates: Type.Array(DeviceCertificate),
  has_more: Type.Boolean(),
});
export type ChannelPage = Static<typeof ChannelPage>;

/** Result of `channel.resolve` (06 §8.3). */
export const ChannelResolution = Type.Object({
  descriptor: ChannelDescriptor,
  signer_certificate: DeviceCertificate,
});
export type ChannelResolution = Static<typeof ChannelResolution>;

/** An event that passed every check of 06 §10.1, its payload typed by `kind`. */
export type VerifiedChannelEvent = {
  readonly sequence: number;
  readonly acceptedAt: number;
  readonly descriptorRevision: number;
  /** Account of the device that signed: owner, poster, editor or deleter. */
  readonly account: string;
} & (
  | { readonly kind: 'descriptor'; readonly payload: ChannelDescriptor }
  | { readonly kind: 'post'; readonly payload: ChannelPost }
  | { readonly kind: 'edit'; readonly payload: ChannelPostEdit }
  | { readonly kind: 'delete'; readonly payload: ChannelPostDelete }
  /** A type this version does not know: takes its sequence and has no effect (06 §5.3). */
  | { readonly kind: 'unknown'; readonly payload: JsonObject }
);

/** What a verifier knows of a channel before it reads: its trust anchor. */
export interface ChannelAnchor {
  readonly channelId: string;
  /** The relay connected to, itself verified as a channel host. */
  readonly relayId: string;
  /** Verified descriptors by revision, from earlier pages or `channel.resolve`. */
  readonly descriptors?: ReadonlyMap<number, ChannelDescriptor>;
}

export interface VerifiedChannelPage {
  /** Ascending. */
  readonly events: readonly VerifiedChannelEvent[];
  /** Verified descriptors by revision: those known before and those of this page. */
  readonly descriptors: ReadonlyMap<number, ChannelDescriptor>;
  /**
   * Revisions that events of the page need and that are unknown: get each with `channel.resolve`
   * and verify the page again. Until then these events are in neither list.
   */
  readonly missing: readonly number[];
  /** Events that must not be adopted, and why. */
  readonly refused: readonly { readonly sequence: number; readonly error: ProtocolError }[];
}

/**
 * Verifies a descriptor with its signer's certificate: structure, size, ID, host and signature (06
 * §4). Whether the signer is still authorized is asked at acceptance only, by the relay.
 *
 * @param certificate one that was verified itself
 * @throws ProtocolError
 * @example
 * const channel = verifyChannelDescriptor(network, value, { channelId, relayId, certificate });
 */
export function verifyChannelDescriptor(
  network: Network,
  value: unknown,
  { channelId, relayId, certificate }: ChannelAnchor & { readonly certificate: DeviceCertificate },
): ChannelDescriptor {
  checkChannelDescriptor(network, value);
  checkChannelDescriptorSize(value);
  if (value.channel_id !== channelId) throw badRequest('channel_id', 'another channel');
  checkChannelId(network, value);
  if (value.relay_id !== relayId) throw badRequest('relay_id', 'another relay');
  if (value.revision === 0) checkInitialDescriptor(value);
  if (certificate.account !== value.creator) throw badRequest('creator', 'did not sign this');
  verifySignatures(network.primitives, deviceSignatures(network, value, certificate), 'descriptor');
  return value;
}

/**
 * Verifies the answer of `channel.resolve`.
 *
 * @param known with `revision` if an exact one was requested
 * @throws ProtocolError
 * @example
 * const channel = verifyChannelResolution(network, value, { channelId, relayId, revision: 3 });
 */
export function verifyChannelResolution(
  network: Network,
  value: unknown,
  known: ChannelAnchor & { readonly revision?: number },
): ChannelDescriptor {
  checkSchema(ChannelResolution, value);
  const { descriptor, signer_certificate: certificate } = value;
  verifyDeviceCertificate(network, certificate, 'signer_certificate');
  const verified = verifyChannelDescriptor(network, descriptor, { ...known, certificate });
  if (known.revision !== undefined && verified.revision !== known.revision) {
    throw badRequest('descriptor.revision', 'not the one asked for');
  }
  return verified;
}

/**
 * Verifies a page of `channel.read` (06 §5.2, §10.1). A fault of the page as a whole throws; a
 * fault of one event keeps that event out and leaves the others.
 *
 * @throws ProtocolError for certificates that do not verify, repeat a device or miss one, for
 *   events that do not ascend, and for a page without its shape
 * @example
 * const { events, missing } = verifyChannelPage(network, page, { channelId, relayId });
 */
export function verifyChannelPage(
  network: Network,
  page: unknown,
  known: ChannelAnchor,
): VerifiedChannelPage {
  checkSchema(ChannelPage, page);
  const certificates = verifyCertificates(network, page);
  const descriptors = new Map(known.descriptors);
  const verified: VerifiedChannelEvent[] = [];
  const missing = new Set<number>();
  const refused: { sequence: number; error: ProtocolError }[] = [];
  let sequence = -1;
  for (const event of page.events) {
    if (event.sequence <= sequence) throw badRequest('events', 'sequences do not ascend');
    sequence = event.sequence;
    const certificate = certificates.get(event.signer_device_id) as DeviceCertificate;
    try {
      const result = verifyEvent(network, event, { ...known, descriptors, certificate });
      if (result === 'missing') missing.add(event.descriptor_rev);
      else verified.push(result);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      refused.push({ sequence, error });
    }
  }
  return { events: verified, descriptors, missing: [...missing], refused };
}

function verifyCertificates(
  network: Network,
  { certificates, events }: ChannelPage,
): Map<string, DeviceCertificate> {
  const byDevice = new Map<string, DeviceCertificate>();
  for (const [index, certificate] of certificates.entries()) {
    verifyDeviceCertificate(network, certificate, `certificates.${index}`);
    byDevice.set(deriveDeviceId(network, certificate), certificate);
  }
  if (byDevice.size !== certificates.length) throw badRequest('certificates', 'repeat a device');
  for (const { signer_device_id } of events) {
    if (!byDevice.has(signer_device_id)) throw badRequest('certificates', 'miss a signer');
  }
  return byDevice;
}

interface EventContext extends ChannelAnchor {
  /** Grows with each descriptor of the page. */
  readonly descriptors: Map<number, ChannelDescriptor>;
  readonly certificate: DeviceCertificate;
}

function verifyEvent(
  network: Network,
  event: ChannelEvent,
  context: EventContext,
): VerifiedChannelEvent | 'missing' {
  const { sequence, accepted_at: acceptedAt, descriptor_rev: descriptorRevision } = event;
  const { account } = context.certificate;
  const outer = { sequence, acceptedAt, descriptorRevision, account };
  const kind = kindOf(network, event.payload.$type);
  if ((sequence === 0) !== (kind === 'descriptor' && descriptorRevision === 0)) {
    throw badRequest('sequence', 'revision 0 belongs to sequence 0 and nothing else does');
  }
  if (kind === 'unknown') return { ...outer, kind, payload: event.payload };
  if (kind === 'descriptor') {
    return { ...outer, kind, payload: verifyDescriptorEvent(network, event, context) };
  }
  const payload = verifyContent(network, event.payload, { ...context, kind });
  const descriptor = context.descriptors.get(descriptorRevision);
  if (descriptor === undefined) return 'missing';
  if (!mayWriteChannel(descriptor, account)) {
    throw new ProtocolError('forbidden', `${account} may not write in this revision`);
  }
  return { ...outer, kind, payload } as VerifiedChannelEvent;
}

function verifyDescriptorEvent(
  network: Network,
  { payload, descriptor_rev }: ChannelEvent,
  context: EventContext,
): ChannelDescriptor {
  const descriptor = verifyChannelDescriptor(network, payload, context);
  if (descriptor.revision !== descriptor_rev) throw badRequest('descriptor_rev', 'not its own');
  const before = context.descriptors.get(descriptor.revision);
  if (before !== undefined && canonicalJson(before) !== canonicalJson(descriptor)) {
    throw badRequest('revision', 'is another descriptor already');
  }
  context.descriptors.set(descriptor.revision, descriptor);
  return descriptor;
}

/**
 * Verifies a post, an edit or a deletion with its signer's certificate (06 §6): everything but the
 * permission, which depends on the descriptor in force.
 *
 * @throws ProtocolError
 */
function verifyContent(
  network: Network,
  value: unknown,
  { kind, channelId, certificate }: EventContext & { readonly kind: ContentKind },
): ChannelContent {
  const content = checkContent(network, value, kind);
  if (content.channel_id !== channelId) throw badRequest('channel_id', 'another channel');
  checkChannelContentSize(content);
  verifySignatures(network.primitives, deviceSignatures(network, content, certificate), kind);
  return content;
}

type ContentKind = 'post' | 'edit' | 'delete';

function checkContent(network: Network, value: unknown, kind: ContentKind): ChannelContent {
  switch (kind) {
    case 'post':
      checkChannelPost(network, value);
      return value;
    case 'edit':
      checkChannelPostEdit(network, value);
      return value;
    case 'delete':
      checkChannelPostDelete(network, value);
      return value;
  }
}

function kindOf(network: Network, type: string): ContentKind | 'descriptor' | 'unknown' {
  switch (type) {
    case network.type('channel.descriptor'):
      return 'descriptor';
    case network.type('channel.post'):
      return 'post';
    case network.type('channel.post.edit'):
      return 'edit';
    case network.type('channel.post.delete'):
      return 'delete';
    default:
      return 'unknown';
  }
}
