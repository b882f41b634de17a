import { hex } from '../encoding/bytes.ts';
import { compressedKey, scriptHash } from './account-id.ts';
import type { Network } from './network.ts';

/**
 * Derives the relay ID of a relay's Neo key: its script hash in `UInt160` text order (chapter 01,
 * section 12).
 *
 * @param publicKey canonical base64url of 33 bytes
 * @throws ProtocolError `bad_request` when the key is not 33 bytes of canonical base64url
 * @example
 * deriveRelayId(network, descriptor.public_key) === descriptor.relay_id;
 */
export function deriveRelayId(network: Network, publicKey: string): string {
  const hash = scriptHash(network.primitives, compressedKey(publicKey));
  return `0x${hex(hash.slice().reverse())}`;
}
