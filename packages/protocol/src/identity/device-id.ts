import { encodeBase64url } from '../encoding/base64url.ts';
import type { Network } from './network.ts';

/**
 * The members of a certificate that its device ID is derived from; a renewal with the same keys
 * keeps the ID (D2).
 */
export interface DeviceIdentity {
  readonly account: string;
  /** Ed25519, base64url. */
  readonly signing_public_key: string;
  /** X25519, base64url. */
  readonly encryption_public_key: string;
}

/**
 * Derives the device ID of a certificate (chapter 01, section 9): `dev_` and 22 characters. Other
 * members of the object do not enter it.
 *
 * @example
 * deriveDeviceId(network, certificate); // 'dev_PvjHcDCCuH2I3lD_0gfWlQ'
 */
export function deriveDeviceId(network: Network, identity: DeviceIdentity): string {
  const input = network.bytes({
    $type: network.type('device.identity'),
    account: identity.account,
    signing_public_key: identity.signing_public_key,
    encryption_public_key: identity.encryption_public_key,
  });
  return `dev_${encodeBase64url(network.primitives.sha256(input).subarray(0, 16))}`;
}
