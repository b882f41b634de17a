import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  AccountPublicKey,
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  Ed25519PublicKey,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
  X25519PublicKey,
} from '../schema.ts';
import { deriveAccountId } from './account-id.ts';
import type { Network } from './network.ts';
import { signatureMember } from './signature-member.ts';
import type { AccountSigner, DeviceSigner } from './signers.ts';

/** A device's keys, approved by its account for a period (chapter 01, section 8). */
export const DeviceCertificate = Type.Object({
  $type: TypeName,
  account: AccountId,
  account_public_key: AccountPublicKey,
  signing_public_key: Ed25519PublicKey,
  encryption_public_key: X25519PublicKey,
  not_before: UnixSeconds,
  expires_at: UnixSeconds,
  device_signature: Signature,
  account_signature: Signature,
});
export type DeviceCertificate = Static<typeof DeviceCertificate>;

/**
 * Checks everything about a certificate but its signatures: structure, period, size, and that the
 * key derives the account, on this network.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` over 4,096 bytes
 * @example
 * checkDeviceCertificate(network, value);
 * console.log(value.expires_at);
 */
export function checkDeviceCertificate(
  network: Network,
  value: unknown,
  path = '',
): asserts value is DeviceCertificate {
  checkObject(network, { type: 'device.certificate', schema: DeviceCertificate }, value, path);
  checkNoNull(value, path);
  const period = value.expires_at - value.not_before;
  if (period <= 0 || period > limits.certificatePeriod) {
    throw badRequest(path, 'expires_at is not within 720 days after not_before');
  }
  checkCanonicalSize(value, limits.certificateBytes, path);
  checkAccountKey(network, value, path);
}

/**
 * Checks that the public key of an object derives the object's account, which also compares the
 * network's magic.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkAccountKey(network, certificate);
 */
export function checkAccountKey(
  network: Network,
  object: { readonly account: string; readonly account_public_key: string },
  path = '',
): void {
  if (deriveAccountId(network, object.account_public_key) !== object.account) {
    throw badRequest(path, 'account_public_key does not derive account');
  }
}

const byDevice = signatureMember('device_signature', 'ed25519', [
  'device_signature',
  'account_signature',
]);
const byAccount = signatureMember('account_signature', 'p256');

/**
 * Returns the bytes that the device signs: the certificate without both signatures.
 *
 * @example
 * const bytes = deviceCertificateDeviceInput(network, certificate);
 */
export function deviceCertificateDeviceInput(
  network: Network,
  certificate: Omit<DeviceCertificate, 'device_signature' | 'account_signature'>,
): Uint8Array {
  return byDevice.input(network, certificate);
}

/**
 * Returns the bytes that the account signs: the certificate with the device's signature.
 *
 * @example
 * const bytes = deviceCertificateAccountInput(network, certificate);
 */
export function deviceCertificateAccountInput(
  network: Network,
  certificate: Omit<DeviceCertificate, 'account_signature'>,
): Uint8Array {
  return byAccount.input(network, certificate);
}

/**
 * Returns both signatures of a certificate, the device's first.
 *
 * @example
 * const [byDevice, byAccount] = deviceCertificateSignatures(network, certificate);
 */
export function deviceCertificateSignatures(
  network: Network,
  certificate: DeviceCertificate,
): SignatureCheck[] {
  return [
    byDevice.check(network, certificate, certificate.signing_public_key),
    byAccount.check(network, certificate, certificate.account_public_key),
  ];
}

/**
 * Checks a certificate with its signatures. Whether the device is currently valid is another
 * question: see `currentDevices`.
 *
 * @throws ProtocolError as `checkDeviceCertificate`; `invalid_signature`
 * @example
 * verifyDeviceCertificate(network, value);
 * const deviceId = deriveDeviceId(network, value);
 */
export function verifyDeviceCertificate(
  network: Network,
  value: unknown,
  path = '',
): asserts value is DeviceCertificate {
  checkDeviceCertificate(network, value, path);
  const checks = deviceCertificateSignatures(network, value);
  verifySignatures(network.primitives, checks, path || 'certificate');
}

/**
 * Returns whether a certificate's period covers an instant: `not_before <= now < expires_at`.
 *
 * @example
 * if (!isCertificateCurrent(certificate, now)) console.log('renew the certificate');
 */
export function isCertificateCurrent(
  certificate: Pick<DeviceCertificate, 'not_before' | 'expires_at'>,
  now: number,
): boolean {
  return certificate.not_before <= now && now < certificate.expires_at;
}

export interface CertificateOptions {
  readonly account: AccountSigner;
  readonly device: DeviceSigner;
  /** Unix seconds. */
  readonly notBefore: number;
  /** Unix seconds, no more than 720 days later. */
  readonly expiresAt: number;
}

/**
 * Makes a certificate: the device signs first, then the account.
 *
 * @throws ProtocolError `bad_request` for a period the protocol does not allow
 * @example
 * const certificate = await signDeviceCertificate(network, {
 *   account: signer,
 *   device: deviceSigner(network, deviceKeys),
 *   notBefore: now,
 *   expiresAt: now + 31_104_000,
 * });
 */
export async function signDeviceCertificate(
  network: Network,
  { account, device, notBefore, expiresAt }: CertificateOptions,
): Promise<DeviceCertificate> {
  const fields = {
    $type: network.type('device.certificate'),
    account: account.account,
    account_public_key: account.publicKey,
    signing_public_key: device.signingPublicKey,
    encryption_public_key: device.encryptionPublicKey,
    not_before: notBefore,
    expires_at: expiresAt,
  };
  const signedByDevice = await byDevice.sign(network, fields, device);
  const certificate = await byAccount.sign(network, signedByDevice, account);
  checkDeviceCertificate(network, certificate);
  return certificate;
}
