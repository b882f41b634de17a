/** Standing permission between two accounts (03 §16). */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { signatureCheck } from '../crypto/signatures.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import {
  type AccountDeviceState,
  checkAccountId,
  currentDevices,
  type DeviceCertificate,
  type Network,
  type SigningDevice,
} from '../identity/index.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  deviceIdPattern,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';

/**
 * `grantor` lets `grantee` query its devices and send it messages. Any of the grantor's devices
 * may sign the body; `signatures` maps device IDs to their signatures.
 */
export const ContactGrant = Type.Object({
  $type: TypeName,
  grantor: AccountId,
  grantee: AccountId,
  /** Invalid from this second on; without it there is no planned end. */
  expires_at: Type.Optional(UnixSeconds),
  signatures: Type.Members(deviceIdPattern, Signature, {
    minProperties: 1,
    additionalProperties: false,
  }),
});
export type ContactGrant = Static<typeof ContactGrant>;

/** A grant as its devices sign it. */
export type GrantBody = Omit<ContactGrant, 'signatures'>;

/** The grantor's verified device state, and the instant at which its devices must be valid. */
export interface DeviceStateAt {
  readonly state: Pick<AccountDeviceState, 'account' | 'certificates'>;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Checks a grant's format, which proves no authorisation (03 §16.1). Repeated member names were
 * refused when the text was parsed.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGrant(network, value);
 * console.log(value.grantor);
 */
export function checkGrant(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ContactGrant {
  checkObject(network, { type: 'contact.grant', schema: ContactGrant }, value, path);
  checkNoNull(value, path);
  checkAccountId(network, value.grantor, memberPath(path, 'grantor'));
  checkAccountId(network, value.grantee, memberPath(path, 'grantee'));
  if (value.grantor === value.grantee) throw badRequest(path, 'grantor is grantee');
}

/**
 * Returns the bytes that every device signs: the body, unknown members included (03 §16.2).
 *
 * @example
 * const signature = device.sign(grantSigningInput(network, grant));
 */
export function grantSigningInput(network: Network, grant: GrantBody): Uint8Array {
  return network.bytes(grant, ['signatures']);
}

/**
 * Returns whether a grant's period is over: `expires_at` itself is outside.
 *
 * @example
 * if (isGrantExpired(grant, now)) console.log('ask for a new grant');
 */
export function isGrantExpired(grant: Pick<ContactGrant, 'expires_at'>, now: number): boolean {
  return grant.expires_at !== undefined && now >= grant.expires_at;
}

/**
 * Returns the signatures that may carry a grant, by device ID: entries of currently valid devices
 * of the grantor. Any single one that verifies is enough; the others neither authorise nor spoil
 * (16.3). Empty if the state is not the grantor's.
 *
 * @param devices the grantor's state, verified before
 * @example
 * const checks = grantSignatures(network, grant, { state, now });
 * console.log([...checks.keys()]);
 */
export function grantSignatures(
  network: Network,
  grant: ContactGrant,
  devices: DeviceStateAt,
): Map<string, SignatureCheck> {
  const { state, now } = devices;
  if (state.account !== grant.grantor) return new Map();
  const current = currentDevices(network, state, now);
  for (const [deviceId, { account }] of current) {
    if (account !== grant.grantor) current.delete(deviceId);
  }
  return grantSignaturesBy(network, grant, current);
}

/**
 * Returns the signatures of a grant by some devices, by device ID; those that did not sign it are
 * left out.
 *
 * @param devices currently valid devices of the grantor, by device ID
 * @example
 * const checks = grantSignaturesBy(network, grant, currentDevices(network, state, now));
 */
export function grantSignaturesBy(
  network: Network,
  grant: ContactGrant,
  devices: ReadonlyMap<string, Pick<DeviceCertificate, 'signing_public_key'>>,
): Map<string, SignatureCheck> {
  const checks = new Map<string, SignatureCheck>();
  const message = grantSigningInput(network, grant);
  for (const [deviceId, { signing_public_key: publicKey }] of devices) {
    if (!Object.hasOwn(grant.signatures, deviceId)) continue;
    const signature = grant.signatures[deviceId] as string;
    checks.set(deviceId, signatureCheck({ scheme: 'ed25519', publicKey, message, signature }));
  }
  return checks;
}

/**
 * Returns the currently valid devices whose signature of a grant verifies, sorted by device ID.
 *
 * @example
 * const authorised = validGrantDevices(network, grant, { state, now }).length > 0;
 */
export function validGrantDevices(
  network: Network,
  grant: ContactGrant,
  devices: DeviceStateAt,
): string[] {
  const { verify } = network.primitives.ed25519;
  const valid: string[] = [];
  for (const [deviceId, check] of grantSignatures(network, grant, devices)) {
    if (verify(check.publicKey, check.message, check.signature)) valid.push(deviceId);
  }
  return valid.sort();
}

/**
 * Checks a grant completely: format, accounts, period, and that at least one currently valid device
 * of the grantor signed it (03 §16.3).
 *
 * @throws ProtocolError `bad_request` for the format; `forbidden` for everything else
 * @example
 * verifyGrant(network, value, { state, now, grantor: peer, grantee: account });
 */
export function verifyGrant(
  network: Network,
  value: unknown,
  expected: DeviceStateAt & { readonly grantor?: string; readonly grantee?: string },
): asserts value is ContactGrant {
  checkGrant(network, value);
  checkGrantUse(value, expected);
  if (validGrantDevices(network, value, expected).length === 0) {
    throw new ProtocolError('forbidden', 'grant: no currently valid device signed it');
  }
}

/**
 * Checks that a well-formed grant is between the right accounts and unexpired.
 *
 * @throws ProtocolError `forbidden`
 * @example
 * checkGrantUse(grant, { grantor: peer, grantee: account, now });
 */
export function checkGrantUse(
  grant: ContactGrant,
  expected: { readonly grantor?: string; readonly grantee?: string; readonly now: number },
): void {
  const { grantor = grant.grantor, grantee = grant.grantee, now } = expected;
  if (grant.grantor !== grantor || grant.grantee !== grantee) {
    throw new ProtocolError('forbidden', 'grant: between other accounts');
  }
  if (isGrantExpired(grant, now)) throw new ProtocolError('forbidden', 'grant: expired');
}

/**
 * Makes a grant of a device's account with that device's signature. Unknown members of `fields` are
 * kept and signed.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const grant = signGrant(network, device, { grantee: peer, expires_at: now + 31_536_000 });
 */
export function signGrant(
  network: Network,
  device: SigningDevice,
  fields: Omit<GrantBody, '$type' | 'grantor'>,
): ContactGrant {
  const body = { ...fields, $type: network.type('contact.grant'), grantor: device.account };
  return addGrantSignature(network, { ...body, signatures: {} }, device);
}

/**
 * Adds one more device's signature to a grant; the others and the body stay as they are.
 *
 * @throws ProtocolError `bad_request` if the device is not of the grantor
 * @example
 * const grantOfBoth = addGrantSignature(network, grant, device);
 */
export function addGrantSignature(
  network: Network,
  grant: ContactGrant,
  device: SigningDevice,
): ContactGrant {
  if (device.account !== grant.grantor) throw badRequest('grantor', 'is not the account signing');
  const signature = encodeBase64url(device.sign(grantSigningInput(network, grant)));
  const signed = { ...grant, signatures: { ...grant.signatures, [device.deviceId]: signature } };
  checkGrant(network, signed);
  return signed;
}
