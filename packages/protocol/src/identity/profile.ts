import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest } from '../errors.ts';
import { limits } from '../limits.ts';
import { ContentReference, checkImageReference } from '../messages/content-reference.ts';
import {
  AccountId,
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  checkText,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { checkAccountId } from './account-id.ts';
import type { DeviceCertificate } from './certificate.ts';
import { deviceSignatures, deviceSigningInput, signAsDevice } from './device-signed.ts';
import type { Network } from './network.ts';
import type { DeviceSigner } from './signers.ts';

/** An account's public face, signed by one of its devices (chapter 01, section 11). */
export const AccountProfile = Type.Object({
  $type: TypeName,
  account: AccountId,
  nickname: Type.Optional(Type.String()),
  avatar: Type.Optional(ContentReference),
  bio: Type.Optional(Type.String()),
  public_discovery: Type.Boolean(),
  updated_at: UnixSeconds,
  device_signature: Signature,
});
export type AccountProfile = Static<typeof AccountProfile>;

/**
 * Checks everything about a profile but its signature and the right to publish it.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` over 8,192 bytes (F1)
 * @example
 * checkProfile(network, value);
 * console.log(value.nickname);
 */
export function checkProfile(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountProfile {
  checkObject(network, { type: 'profile', schema: AccountProfile }, value, path);
  checkNoNull(value, path);
  const { nickname, bio, avatar } = value;
  if (nickname !== undefined) {
    const rule = { maxBytes: limits.nicknameBytes, allowEmpty: true };
    checkText(nickname, rule, memberPath(path, 'nickname'));
  }
  if (bio !== undefined) {
    checkText(bio, { maxBytes: limits.bioBytes, allowEmpty: true }, memberPath(path, 'bio'));
  }
  if (avatar !== undefined) checkImageReference(avatar, memberPath(path, 'avatar'));
  checkCanonicalSize(value, limits.profileBytes, path);
  checkAccountId(network, value.account, memberPath(path, 'account'));
}

/**
 * Returns the bytes that the device signs (F2).
 *
 * @example
 * const bytes = profileSigningInput(network, profile);
 */
export function profileSigningInput(
  network: Network,
  profile: Omit<AccountProfile, 'device_signature'>,
): Uint8Array {
  return deviceSigningInput(network, profile);
}

/**
 * Returns the profile's signature, by the device of a certificate that was verified on its own.
 *
 * @example
 * verifySignatures(primitives, profileSignatures(network, profile, certificate), 'profile');
 */
export function profileSignatures(
  network: Network,
  profile: AccountProfile,
  certificate: Pick<DeviceCertificate, 'signing_public_key'>,
): SignatureCheck[] {
  return deviceSignatures(network, profile, certificate);
}

/**
 * Checks a profile with its signature, against a certificate that was verified before. The device
 * need not be valid now (F6).
 *
 * @throws ProtocolError as `checkProfile`; `bad_request` if the certificate is of another account;
 *   `invalid_signature`
 * @example
 * verifyDeviceCertificate(network, certificate);
 * verifyProfile(network, value, certificate);
 */
export function verifyProfile(
  network: Network,
  value: unknown,
  certificate: Pick<DeviceCertificate, 'account' | 'signing_public_key'>,
): asserts value is AccountProfile {
  checkProfile(network, value);
  if (value.account !== certificate.account) {
    throw badRequest('account', 'certificate is of another account');
  }
  const checks = profileSignatures(network, value, certificate);
  verifySignatures(network.primitives, checks, 'profile');
}

/** The members of a profile that its account chooses. */
export type ProfileFields = Omit<AccountProfile, '$type' | 'device_signature'>;

/**
 * Makes a profile. Unknown members of `fields` are kept and signed.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * const fields = { account, nickname: 'Ann', public_discovery: true, updated_at: now };
 * const profile = signProfile(network, deviceKeysSigner, fields);
 */
export function signProfile(
  network: Network,
  device: DeviceSigner,
  fields: ProfileFields,
): AccountProfile {
  const unsigned = { ...fields, $type: network.type('profile') };
  const profile = signAsDevice(network, unsigned, device);
  checkProfile(network, profile);
  return profile;
}
