import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  AccountPublicKey,
  Counter,
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
} from '../schema.ts';
import {
  checkAccountKey,
  checkDeviceCertificate,
  DeviceCertificate,
  deviceCertificateSignatures,
  isCertificateCurrent,
} from './certificate.ts';
import { deriveDeviceId } from './device-id.ts';
import type { Network } from './network.ts';
import { signatureMember } from './signature-member.ts';
import type { AccountSigner } from './signers.ts';

/** Which devices an account permits, complete (chapter 01, section 10). */
export const AccountDeviceState = Type.Object({
  $type: TypeName,
  account: AccountId,
  account_public_key: AccountPublicKey,
  revision: Counter,
  certificates: Type.Array(DeviceCertificate, { maxItems: limits.deviceStateCertificates }),
  account_signature: Signature,
});
export type AccountDeviceState = Static<typeof AccountDeviceState>;

/**
 * Checks everything about a device state but its signatures, its certificates included.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` for the state or a certificate
 * @example
 * checkDeviceState(network, value);
 * console.log(value.revision);
 */
export function checkDeviceState(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountDeviceState {
  checkObject(network, { type: 'account.device.state', schema: AccountDeviceState }, value, path);
  checkNoNull(value, path);
  checkCanonicalSize(value, limits.deviceStateBytes, path);
  checkAccountKey(network, value, path);
  const seen = new Set<string>();
  for (const [index, certificate] of value.certificates.entries()) {
    const at = memberPath(memberPath(path, 'certificates'), index);
    checkDeviceCertificate(network, certificate, at);
    if (certificate.account !== value.account) throw badRequest(at, 'of another account');
    const deviceId = deriveDeviceId(network, certificate);
    if (seen.has(deviceId)) throw badRequest(at, 'repeats a device');
    seen.add(deviceId);
  }
}

const byAccount = signatureMember('account_signature', 'p256');

/**
 * Returns the bytes that the account signs: the state without its own signature, certificates
 * complete (A1).
 *
 * @example
 * const signature = await signer.sign(deviceStateSigningInput(network, state));
 */
export function deviceStateSigningInput(
  network: Network,
  state: Omit<AccountDeviceState, 'account_signature'>,
): Uint8Array {
  return byAccount.input(network, state);
}

/**
 * Returns the state's signature and both of every certificate.
 *
 * @example
 * const checks = deviceStateSignatures(network, state);
 */
export function deviceStateSignatures(
  network: Network,
  state: AccountDeviceState,
): SignatureCheck[] {
  return [
    byAccount.check(network, state, state.account_public_key),
    ...state.certificates.flatMap((certificate) =>
      deviceCertificateSignatures(network, certificate),
    ),
  ];
}

/**
 * Checks a device state with all its signatures.
 *
 * @throws ProtocolError as `checkDeviceState`; `invalid_signature`
 * @example
 * verifyDeviceState(network, value);
 * const devices = currentDevices(network, value, now);
 */
export function verifyDeviceState(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountDeviceState {
  checkDeviceState(network, value, path);
  const checks = deviceStateSignatures(network, value);
  verifySignatures(network.primitives, checks, path || 'device state');
}

/**
 * Returns the registered devices of a state by device ID, currently valid or not (A5).
 *
 * @example
 * const certificateOfDevice = devicesOf(network, state).get(device.deviceId);
 */
export function devicesOf(
  network: Network,
  state: Pick<AccountDeviceState, 'certificates'>,
): Map<string, DeviceCertificate> {
  return new Map(
    state.certificates.map((certificate) => [deriveDeviceId(network, certificate), certificate]),
  );
}

/**
 * Returns the devices of a state whose certificate covers an instant, by device ID.
 *
 * @example
 * for (const [deviceId, certificate] of currentDevices(network, state, now)) {
 *   console.log(deviceId, certificate.expires_at);
 * }
 */
export function currentDevices(
  network: Network,
  state: Pick<AccountDeviceState, 'certificates'>,
  now: number,
): Map<string, DeviceCertificate> {
  const current = state.certificates.filter((item) => isCertificateCurrent(item, now));
  return devicesOf(network, { certificates: current });
}

/**
 * Returns the recommended next revision of a device state or route (A7): the clock's milliseconds,
 * or the successor of the current revision if that is greater.
 *
 * @param current `undefined` if there is none yet
 * @throws ProtocolError `state_conflict` when no safe integer is left (I2)
 * @example
 * const revision = nextRevision(state.revision, Date.now());
 */
export function nextRevision(current: number | undefined, nowMilliseconds: number): number {
  const revision = Math.max((current ?? -1) + 1, nowMilliseconds, 0);
  if (!Number.isSafeInteger(revision)) {
    throw new ProtocolError('state_conflict', 'revisions are exhausted');
  }
  return revision;
}

/**
 * Makes a device state.
 *
 * @throws ProtocolError `bad_request` for certificates the state may not hold
 * @example
 * const revision = nextRevision(state.revision, Date.now());
 * const next = await signDeviceState(network, signer, { revision, certificates: [certificate] });
 */
export async function signDeviceState(
  network: Network,
  account: AccountSigner,
  fields: { readonly revision: number; readonly certificates: DeviceCertificate[] },
): Promise<AccountDeviceState> {
  const unsigned = {
    $type: network.type('account.device.state'),
    account: account.account,
    account_public_key: account.publicKey,
    revision: fields.revision,
    certificates: fields.certificates,
  };
  const state = await byAccount.sign(network, unsigned, account);
  checkDeviceState(network, state);
  return state;
}
