/**
 * Every signed object of a group is signed alike: by one device, over the network-bound bytes of
 * the whole object without its root `device_signature` (05 §3.1). The management digest covers
 * the signature too (05 §3.3).
 */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { signatureCheck } from '../crypto/signatures.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import type { DeviceCertificate, DeviceSigner } from '../identity/index.ts';
import type { Network } from '../identity/network.ts';
import type { JsonObject } from '../json/types.ts';

/** Bytes the device signs; the object with or without its `device_signature` gives the same. */
export function groupSigningInput(network: Network, object: JsonObject): Uint8Array {
  return network.bytes(object, ['device_signature']);
}

/**
 * The one signature of a checked group object, to be verified with a certificate that was itself
 * verified and whose account was compared. The certificate may have expired since.
 *
 * @param certificate that of the signing device
 */
export function groupSignatures(
  network: Network,
  object: JsonObject & { readonly device_signature: string },
  certificate: Pick<DeviceCertificate, 'signing_public_key'>,
): SignatureCheck[] {
  return [
    signatureCheck({
      scheme: 'ed25519',
      publicKey: certificate.signing_public_key,
      message: groupSigningInput(network, object),
      signature: object.device_signature,
    }),
  ];
}

/**
 * Signs a group object.
 *
 * @example
 * const body = { $type: network.type('group.close'), group_id, prev_hash: group.head };
 * const close = signGroupObject(network, body, device);
 */
export function signGroupObject<T extends JsonObject>(
  network: Network,
  object: T,
  device: Pick<DeviceSigner, 'sign'>,
): T & { readonly device_signature: string } {
  const signature = device.sign(groupSigningInput(network, object));
  return { ...object, device_signature: encodeBase64url(signature) };
}

/**
 * The management digest of a chain event's payload, signature and unknown members included; the
 * next event's `prev_hash`. Outer members of the event take no part (05 §3.3).
 *
 * @returns `sha256:` and 43 characters
 */
export function managementHash(network: Network, payload: JsonObject): string {
  return network.hash(payload);
}
