import type { Random } from '../crypto/primitives.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import type { Network } from '../identity/network.ts';
import { Base64url } from '../schema.ts';

/** `grp_` and 16 bytes (05 §2); its value is derived, see {@link deriveGroupId}. */
export const GroupId = Base64url(16, 'grp_');
/** `inv_` and 16 random bytes, new for every invitation (05 §2). */
export const GroupInviteId = Base64url(16, 'inv_');
/** 16 bytes that a creator never uses twice on one relay (05 §3.2). */
export const GroupNonce = Base64url(16);

/** The members that a group's ID is derived from; they never change (05 §3.2). */
export interface GroupIdentity {
  /** Account ID of the initial owner, also after a transfer. */
  readonly creator: string;
  readonly nonce: string;
  /** Relay ID of the host. */
  readonly relay_id: string;
}

/** Returns the bytes whose digest is the ID: network-bound JSON, never transmitted (05 §3.2). */
export function groupIdentityInput(network: Network, identity: GroupIdentity): Uint8Array {
  const { creator, nonce, relay_id } = identity;
  return network.bytes({ $type: network.type('group.identity'), creator, nonce, relay_id });
}

/**
 * Derives the ID of a group. Name, members and epochs are no inputs, so it never changes.
 *
 * @example
 * deriveGroupId(network, { creator: account, nonce, relay_id: relayId }); // 'grp_omoOs3VZ9io…'
 */
export function deriveGroupId(network: Network, identity: GroupIdentity): string {
  const digest = network.primitives.sha256(groupIdentityInput(network, identity));
  return `grp_${encodeBase64url(digest.subarray(0, 16))}`;
}

/**
 * Makes a nonce for {@link deriveGroupId}.
 *
 * @example
 * const nonce = createGroupNonce(random);
 */
export function createGroupNonce(random: Random): string {
  return encodeBase64url(random(16));
}

/**
 * Makes an invitation ID.
 *
 * @example
 * const invite_id = createGroupInviteId(random); // 'inv_…'
 */
export function createGroupInviteId(random: Random): string {
  return `inv_${encodeBase64url(random(16))}`;
}
