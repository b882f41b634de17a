import { encodeBase64url } from '../encoding/base64url.ts';
import { badRequest } from '../errors.ts';
import type { Network } from '../identity/network.ts';
import { Base64url, type Static, Type } from '../schema.ts';

/** `chan_` and 16 bytes (06 §3). */
export const ChannelId = Base64url(16, 'chan_');
/** 16 bytes, fresh for every channel of one creator on one relay (06 §3). */
export const ChannelNonce = Base64url(16);

/** The members that a channel's ID is derived from (06 §3). */
export interface ChannelIdentity {
  readonly nonce: string;
  /** Account ID of the owner. */
  readonly creator: string;
  /** The host. */
  readonly relay_id: string;
}

/** Returns the bytes whose digest is the ID: network-bound JSON, never transmitted (06 §3). */
export function channelIdInput(network: Network, identity: ChannelIdentity): Uint8Array {
  const { nonce, creator, relay_id } = identity;
  return network.bytes({ $type: network.type('channel.identity'), nonce, creator, relay_id });
}

/**
 * Derives the ID of a channel. Name, moderators and revision are no inputs, so it never changes.
 *
 * @example
 * deriveChannelId(network, { nonce, creator: account, relay_id: relayId }); // 'chan_0NM6hMax…'
 */
export function deriveChannelId(network: Network, identity: ChannelIdentity): string {
  const digest = network.primitives.sha256(channelIdInput(network, identity));
  return `chan_${encodeBase64url(digest.subarray(0, 16))}`;
}

/**
 * Checks that an object's `channel_id` is the one its other members give.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelId(network, channel);
 */
export function checkChannelId(
  network: Network,
  identity: ChannelIdentity & { readonly channel_id: string },
): void {
  if (identity.channel_id !== deriveChannelId(network, identity)) {
    throw badRequest('channel_id', 'does not follow from nonce, creator and relay_id');
  }
}

/** Parameters of `channel.subscribe`: the complete set wanted (06 §9.1). */
export const ChannelSubscription = Type.Object({ channel_ids: Type.Array(ChannelId) });
export type ChannelSubscription = Static<typeof ChannelSubscription>;

/**
 * Refuses a subscription set that names a channel twice (06 §9.1). The count rule needs the
 * connection's present set and is the relay's.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelSubscription({ channel_ids: [channelId] });
 */
export function checkChannelSubscription({ channel_ids }: ChannelSubscription): void {
  if (new Set(channel_ids).size !== channel_ids.length) {
    throw badRequest('channel_ids', 'names a channel twice');
  }
}
