/**
 * Descriptors, posts, edits and deletions are signed alike: by one device, over the network-bound
 * bytes of the whole object without its root `device_signature` (06 §4, §6).
 */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { signatureCheck } from '../crypto/signatures.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import type { DeviceCertificate } from '../identity/certificate.ts';
import type { Network } from '../identity/network.ts';
import type { DeviceSigner } from '../identity/signers.ts';
import type { JsonObject } from '../json/types.ts';

/** What the device signs; an object with or without its `device_signature` gives the same. */
export function channelSigningInput(network: Network, object: JsonObject): Uint8Array {
  return network.bytes(object, ['device_signature']);
}

/**
 * The one signature of a checked channel object, by the device of a certificate that was verified
 * on its own. It may have expired since (06 §5.2).
 */
export function channelSignatures(
  network: Network,
  object: JsonObject & { readonly device_signature: string },
  certificate: Pick<DeviceCertificate, 'signing_public_key'>,
): SignatureCheck[] {
  return [
    signatureCheck({
      scheme: 'ed25519',
      publicKey: certificate.signing_public_key,
      message: channelSigningInput(network, object),
      signature: object.device_signature,
    }),
  ];
}

/** The object with its device's signature, which replaces one that is there. */
export function signChannelObject<T extends JsonObject>(
  network: Network,
  device: DeviceSigner,
  object: T,
): T & { readonly device_signature: string } {
  const signature = device.sign(channelSigningInput(network, object));
  return { ...object, device_signature: encodeBase64url(signature) };
}
