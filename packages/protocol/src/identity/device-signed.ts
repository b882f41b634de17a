/**
 * Objects signed by one device, over the network-bound bytes of the whole object without its root
 * `device_signature` (01 §4, §5.2).
 */
import type { SignatureCheck } from '../crypto/primitives.ts';
import type { JsonObject } from '../json/types.ts';
import type { DeviceCertificate } from './certificate.ts';
import type { BoundTexts, Network } from './network.ts';
import { signatureMember } from './signature-member.ts';
import type { DeviceSigner } from './signers.ts';

const byDevice = signatureMember('device_signature', 'ed25519');

/**
 * Returns the bytes that the device signs; the object with or without its `device_signature` gives
 * the same.
 *
 * @example
 * const signature = device.sign(deviceSigningInput(network, post));
 */
export function deviceSigningInput(network: Network, object: JsonObject): Uint8Array {
  return byDevice.input(network, object);
}

/**
 * Returns the one signature of a checked object, by the device of a certificate that was itself
 * verified and whose account was compared. The certificate may have expired since.
 *
 * @example
 * verifySignatures(primitives, deviceSignatures(network, post, certificate), 'post');
 */
export function deviceSignatures(
  network: Network,
  object: JsonObject & { readonly device_signature: string },
  certificate: Pick<DeviceCertificate, 'signing_public_key'>,
): SignatureCheck[] {
  return [byDevice.check(network, object, certificate.signing_public_key)];
}

/**
 * Formats an object once for both: its Canonical JSON, and the text that the device signs.
 *
 * @throws ProtocolError `bad_request` for an object that carries `$context`
 * @example
 * const texts = deviceSignedTexts(network, post);
 * verifySignatures(primitives, boundSignatures(texts, post, certificate), 'post');
 */
export function deviceSignedTexts(network: Network, object: JsonObject): BoundTexts {
  return byDevice.texts(network, object);
}

/**
 * As {@link deviceSignatures}, of an object that was formatted before.
 *
 * @example
 * const checks = boundSignatures(deviceSignedTexts(network, post), post, certificate);
 */
export function boundSignatures(
  { bound }: Pick<BoundTexts, 'bound'>,
  object: { readonly device_signature: string },
  certificate: Pick<DeviceCertificate, 'signing_public_key'>,
): SignatureCheck[] {
  return [byDevice.checkBound(bound, object, certificate.signing_public_key)];
}

/**
 * Signs an object with a device's key; the signature replaces one that is there.
 *
 * @example
 * const body = { $type: network.type('group.close'), group_id, prev_hash: group.head };
 * const close = signAsDevice(network, body, device);
 */
export function signAsDevice<T extends JsonObject>(
  network: Network,
  object: T,
  device: Pick<DeviceSigner, 'sign'>,
): T & { readonly device_signature: string } {
  return byDevice.attach(object, device.sign(byDevice.input(network, object)));
}
