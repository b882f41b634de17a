import { badRequest, ProtocolError } from '../errors.ts';
import { checkAccountId } from '../identity/account-id.ts';
import { signAsDevice } from '../identity/device-signed.ts';
import type { Network } from '../identity/network.ts';
import type { DeviceSigner } from '../identity/signers.ts';
import type { JsonObject } from '../json/types.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  Counter,
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  checkText,
  RelayId,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { ChannelId, ChannelNonce, deriveChannelId } from './ids.ts';

/**
 * The signed statement of a channel's identity, public profile and administrative state; one
 * complete object per revision (06 §4). Times are Unix seconds.
 */
export const ChannelDescriptor = Type.Object({
  $type: TypeName,
  channel_id: ChannelId,
  nonce: ChannelNonce,
  creator: AccountId,
  relay_id: RelayId,
  name: Type.String(),
  description: Type.Optional(Type.String()),
  moderators: Type.Optional(Type.Array(AccountId, { maxItems: limits.channelModerators })),
  revision: Counter,
  status: Type.Union([Type.Literal('active'), Type.Literal('closed')]),
  created_at: UnixSeconds,
  updated_at: UnixSeconds,
  device_signature: Signature,
});
export type ChannelDescriptor = Static<typeof ChannelDescriptor>;

/** Parameters of `channel.close`: what the final descriptor changes, and its signature (06 §8.5). */
export const ChannelClose = Type.Object({
  channel_id: ChannelId,
  revision: Counter,
  updated_at: UnixSeconds,
  device_signature: Signature,
});
export type ChannelClose = Static<typeof ChannelClose>;

/**
 * Checks the structure of a descriptor: members, texts, moderators. What follows from them (ID,
 * size, neighbours in time) has checks of its own, because the methods order them differently.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelDescriptor(network, value);
 * console.log(value.name);
 */
export function checkChannelDescriptor(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ChannelDescriptor {
  const definition = { type: 'channel.descriptor', schema: ChannelDescriptor };
  checkObject(network, definition, value, path);
  checkNoNull(value, path);
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  const { name, description, creator, moderators = [] } = value;
  checkText(name, { maxBytes: limits.channelNameBytes, allowEmpty: false }, at('name'));
  if (description !== undefined) {
    const rule = { maxBytes: limits.channelDescriptionBytes, allowEmpty: true };
    checkText(description, rule, at('description'));
  }
  checkAccountId(network, creator, at('creator'));
  for (const [index, moderator] of moderators.entries()) {
    checkAccountId(network, moderator, at(`moderators.${index}`));
  }
  if (new Set([creator, ...moderators]).size !== moderators.length + 1) {
    throw badRequest(at('moderators'), 'names an account twice, or the owner');
  }
}

/**
 * Checks a descriptor's total size, its signature and unknown members included (06 §4).
 *
 * @returns its Canonical JSON
 * @throws ProtocolError `request_too_large`
 * @example
 * const text = checkChannelDescriptorSize(channel);
 */
export function checkChannelDescriptorSize(descriptor: ChannelDescriptor): string {
  return checkCanonicalSize(descriptor, limits.channelDescriptorBytes, 'descriptor');
}

/**
 * Checks what must hold of revision 0 (06 §8.2).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkInitialDescriptor(channel);
 */
export function checkInitialDescriptor(descriptor: ChannelDescriptor): void {
  if (descriptor.revision !== 0) throw badRequest('revision', 'expected 0');
  if (descriptor.status !== 'active') throw badRequest('status', 'expected active');
  if (descriptor.created_at !== descriptor.updated_at) {
    throw badRequest('updated_at', 'differs from created_at');
  }
}

/** Members that no later revision may change (06 §8.4). */
const immutable = ['channel_id', 'nonce', 'creator', 'relay_id', 'created_at'] as const;

/**
 * Checks that an update does not change immutable members (06 §8.4). `checkNextRevision` checks the
 * revision, which the method does later.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkDescriptorUpdate(channel, nextChannel);
 */
export function checkDescriptorUpdate(current: ChannelDescriptor, next: ChannelDescriptor): void {
  for (const name of immutable) {
    if (next[name] !== current[name]) throw badRequest(name, 'cannot change');
  }
  if (next.status !== 'active') throw badRequest('status', 'expected active');
}

/**
 * Checks that the channel is open and that `revision` is the one after the current (06 §8.4, §8.5).
 * The highest safe integer has no successor, so an exhausted channel refuses as well.
 *
 * @throws ProtocolError `state_conflict`
 * @example
 * checkNextRevision(channel, nextChannel.revision);
 */
export function checkNextRevision(
  current: Pick<ChannelDescriptor, 'status' | 'revision'>,
  revision: number,
): void {
  checkChannelOpen(current);
  if (revision !== current.revision + 1 || !Number.isSafeInteger(revision)) {
    throw new ProtocolError('state_conflict', 'revision: not the next one');
  }
}

/**
 * Refuses every write to a closed channel (06 §7.4).
 *
 * @throws ProtocolError `state_conflict`
 * @example
 * checkChannelOpen(channel);
 */
export function checkChannelOpen(current: Pick<ChannelDescriptor, 'status'>): void {
  if (current.status !== 'active') {
    throw new ProtocolError('state_conflict', 'the channel is closed');
  }
}

/**
 * Returns the final descriptor of a channel, built alike by client and relay: everything of the
 * current one, unknown members too, and four members of the request (06 §8.5). Its signature and
 * size are still to be checked.
 *
 * @example
 * const closed = closedDescriptor(channel, close);
 */
export function closedDescriptor(
  current: ChannelDescriptor,
  { revision, updated_at, device_signature }: ChannelClose,
): ChannelDescriptor {
  return { ...current, status: 'closed', revision, updated_at, device_signature };
}

/** The members of a descriptor that give the right to write. */
export interface ChannelWriters {
  readonly creator: string;
  readonly moderators?: readonly string[];
}

/**
 * Returns whether an account may post, edit and delete: the owner and the moderators (06 §1).
 *
 * @example
 * if (!mayWriteChannel(channel, account)) throw new ProtocolError('forbidden', 'no moderator');
 */
export function mayWriteChannel(
  { creator, moderators = [] }: ChannelWriters,
  account: string,
): boolean {
  return creator === account || moderators.includes(account);
}

/** The members of a new channel that its creator chooses. */
export interface NewChannel {
  readonly creator: string;
  /** The host, which cannot be changed later. */
  readonly relay_id: string;
  /** 16 fresh random bytes, base64url; never one that was used before. */
  readonly nonce: string;
  readonly name: string;
  readonly description?: string;
  readonly moderators?: readonly string[];
  /** Unix seconds. */
  readonly created_at: number;
}

/**
 * Makes the descriptor that creates a channel (06 §8.2). Unknown members of `fields` are kept and
 * signed.
 *
 * @param device of the creator
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * const nonce = encodeBase64url(random(16));
 * const fields = { creator: account, relay_id, nonce, name: 'Release notes', created_at: now };
 * const descriptor = signChannelDescriptor(network, deviceKeysSigner, fields);
 */
export function signChannelDescriptor(
  network: Network,
  device: DeviceSigner,
  fields: NewChannel,
): ChannelDescriptor {
  return signChecked(network, device, {
    ...fields,
    $type: network.type('channel.descriptor'),
    channel_id: deriveChannelId(network, fields),
    revision: 0,
    status: 'active',
    updated_at: fields.created_at,
  });
}

/** The members that an update may change; `null` removes a member. */
export interface ChannelChange {
  readonly name?: string;
  readonly description?: string | null;
  readonly moderators?: readonly string[] | null;
  /** Unix seconds. */
  readonly updated_at: number;
}

/**
 * Makes the next revision: the current one with some members changed, the others kept, unknown ones
 * too (06 §8.4).
 *
 * @throws RangeError when the revisions are exhausted (01 I3)
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * const change = { description: null, updated_at: now };
 * const next = signChannelUpdate(network, deviceKeysSigner, { current: channel, change });
 */
export function signChannelUpdate(
  network: Network,
  device: DeviceSigner,
  { current, change }: { readonly current: ChannelDescriptor; readonly change: ChannelChange },
): ChannelDescriptor {
  const merged = { ...current, ...change, revision: nextRevision(current) };
  const kept = Object.entries(merged).filter(([, value]) => value !== null && value !== undefined);
  return signChecked(network, device, Object.fromEntries(kept));
}

/**
 * Makes the parameters of `channel.close` (06 §8.5).
 *
 * @throws RangeError when the revisions are exhausted (01 I3)
 * @example
 * const close = signChannelClose(network, deviceKeysSigner, { current: channel, updatedAt: now });
 */
export function signChannelClose(
  network: Network,
  device: DeviceSigner,
  { current, updatedAt }: { readonly current: ChannelDescriptor; readonly updatedAt: number },
): ChannelClose {
  const changes = { revision: nextRevision(current), updated_at: updatedAt };
  const final = { ...current, ...changes, status: 'closed' };
  const { device_signature } = signAsDevice(network, final, device);
  return { channel_id: current.channel_id, ...changes, device_signature };
}

function signChecked(
  network: Network,
  device: DeviceSigner,
  object: JsonObject,
): ChannelDescriptor {
  const descriptor: JsonObject = signAsDevice(network, object, device);
  checkChannelDescriptor(network, descriptor);
  checkChannelDescriptorSize(descriptor);
  return descriptor;
}

function nextRevision({ revision }: ChannelDescriptor): number {
  if (revision >= Number.MAX_SAFE_INTEGER) throw new RangeError('the revisions are exhausted');
  return revision + 1;
}
