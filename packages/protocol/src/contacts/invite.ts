/** An account's invitation to first contact, given out as a link or QR code (03 §14). */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import { equalBytes } from '../encoding/bytes.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import {
  checkAccountId,
  currentDevices,
  deviceSignatures,
  deviceSigningInput,
  type Network,
  type SigningDevice,
  signAsDevice,
} from '../identity/index.ts';
import { canonicalBytes } from '../json/canonical.ts';
import { JsonError } from '../json/json-error.ts';
import { decodeUtf8, parseJson } from '../json/parse.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  DeviceId,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import type { DeviceStateAt } from './grant.ts';

/** Signed by one device; any number of accounts may use it until it expires. */
export const ContactInvite = Type.Object({
  $type: TypeName,
  inviter: AccountId,
  signer_device_id: DeviceId,
  expires_at: UnixSeconds,
  device_signature: Signature,
});
export type ContactInvite = Static<typeof ContactInvite>;

/**
 * Checks an invite's format.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkInvite(network, value);
 * console.log(value.inviter);
 */
export function checkInvite(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ContactInvite {
  checkObject(network, { type: 'contact.invite', schema: ContactInvite }, value, path);
  checkNoNull(value, path);
  checkAccountId(network, value.inviter, memberPath(path, 'inviter'));
}

/**
 * Returns the bytes that the device signs: the invite without its signature.
 *
 * @example
 * const signature = device.sign(inviteSigningInput(network, invite));
 */
export function inviteSigningInput(
  network: Network,
  invite: Omit<ContactInvite, 'device_signature'>,
): Uint8Array {
  return deviceSigningInput(network, invite);
}

/**
 * Returns the invite's signature, by its signer as the inviter's current state knows it.
 *
 * @param devices the inviter's state, verified before
 * @throws ProtocolError `forbidden` if the signer is not a currently valid device of the inviter
 * @example
 * verifySignatures(primitives, inviteSignatures(network, invite, { state, now }), 'invite');
 */
export function inviteSignatures(
  network: Network,
  invite: ContactInvite,
  devices: DeviceStateAt,
): SignatureCheck[] {
  const { state, now } = devices;
  if (state.account !== invite.inviter) throw notSigner();
  const signer = inviteSigner(invite, currentDevices(network, state, now));
  if (signer.account !== invite.inviter) throw notSigner();
  return deviceSignatures(network, invite, signer);
}

/**
 * Returns the device that signed an invite.
 *
 * @param devices currently valid devices of the inviter, by device ID
 * @throws ProtocolError `forbidden` if the signer is none of them
 * @example
 * const signer = inviteSigner(invite, currentDevices(network, state, now));
 * verifySignatures(primitives, deviceSignatures(network, invite, signer), 'invite');
 */
export function inviteSigner<T>(invite: ContactInvite, devices: ReadonlyMap<string, T>): T {
  const signer = devices.get(invite.signer_device_id);
  if (signer === undefined) throw notSigner();
  return signer;
}

function notSigner(): ProtocolError {
  return new ProtocolError('forbidden', 'invite: signer is not a currently valid device');
}

/**
 * Checks that a well-formed invite is of the right account and unexpired; everything that does not
 * need the inviter's device state.
 *
 * @throws ProtocolError `forbidden`
 * @example
 * checkInviteUse(invite, { inviter: peer, now });
 */
export function checkInviteUse(
  invite: ContactInvite,
  expected: { readonly inviter?: string; readonly now: number },
): void {
  const { inviter = invite.inviter, now } = expected;
  if (invite.inviter !== inviter) throw new ProtocolError('forbidden', 'invite: another account');
  if (invite.expires_at <= now) throw new ProtocolError('forbidden', 'invite: expired');
}

/**
 * Checks an invite completely, against the inviter's current state.
 *
 * @throws ProtocolError `bad_request` for the format; `invalid_signature`; `forbidden` for a wrong
 *   account, an expired invite, or a signer that is not a currently valid device
 * @example
 * verifyInvite(network, value, { inviter: peer, state, now });
 */
export function verifyInvite(
  network: Network,
  value: unknown,
  expected: DeviceStateAt & { readonly inviter?: string },
): asserts value is ContactInvite {
  checkInvite(network, value);
  checkInviteUse(value, expected);
  verifySignatures(network.primitives, inviteSignatures(network, value, expected), 'invite');
}

/**
 * Makes an invite of a device's account. Unknown members of `fields` are kept and signed.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const invite = signInvite(network, device, { expires_at: now + 604_800 });
 * const link = encodeInvite(network, invite);
 */
export function signInvite(
  network: Network,
  device: SigningDevice,
  fields: Pick<ContactInvite, 'expires_at'>,
): ContactInvite {
  const unsigned = {
    ...fields,
    $type: network.type('contact.invite'),
    inviter: device.account,
    signer_device_id: device.deviceId,
  };
  const invite = signAsDevice(network, unsigned, device);
  checkInvite(network, invite);
  return invite;
}

/**
 * Encodes an invite as one word of text, for links and QR codes: `svc-invite:` and base64url of its
 * Canonical JSON (03 §21, decision).
 *
 * @example
 * const text = encodeInvite(network, invite); // 'svc-invite:…'
 */
export function encodeInvite(network: Network, invite: ContactInvite): string {
  return `${invitePrefix(network)}${encodeBase64url(canonicalBytes(invite))}`;
}

/**
 * Decodes a text of {@link encodeInvite} and checks the invite's format, nothing else.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const invite = decodeInvite(network, text);
 */
export function decodeInvite(network: Network, text: string): ContactInvite {
  const prefix = invitePrefix(network);
  if (!text.startsWith(prefix)) throw badRequest('invite', `expected ${prefix}`);
  const bytes = decodeBase64url(text.slice(prefix.length));
  if (bytes === undefined) throw badRequest('invite', 'expected canonical base64url');
  const invite = parse(bytes);
  checkInvite(network, invite, 'invite');
  // One text for one invite: what is compared, stored or shown again is the same.
  if (!equalBytes(canonicalBytes(invite), bytes)) throw badRequest('invite', 'is not canonical');
  return invite;
}

function invitePrefix(network: Network): string {
  return `${network.word}-invite:`;
}

function parse(bytes: Uint8Array): unknown {
  try {
    return parseJson(decodeUtf8(bytes));
  } catch (error) {
    if (error instanceof JsonError) throw badRequest('invite', error.message);
    throw error;
  }
}
