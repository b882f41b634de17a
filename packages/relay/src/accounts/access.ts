import {
  type Authorization,
  type AuthorizationUse,
  type ContactGrant,
  type ContactInvite,
  checkAuthorizationUse,
  type DeviceStateAt,
  grantSignatures,
  inviteSignatures,
  isGrant,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson, canonicalWith } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { Reader } from '../storage/types.ts';
import { parseCertificate } from './devices.ts';
import { readCurrentDevices, readPublicDiscovery } from './store.ts';

/**
 * What permits a request about an account. A device keeps its keys under its ID, so a signature
 * that verified stays valid; {@link requireAccess} checks in the transaction that a signing device
 * is still valid.
 */
export type Access =
  /** The account's own request, which needs no authorization. */
  | { readonly kind: 'own' }
  /** No authorization: public discovery must be on. */
  | { readonly kind: 'public' }
  /** IDs of the account's devices whose signature of the authorization verified. */
  | { readonly kind: 'signed'; readonly devices: readonly string[] };

/**
 * Verifies a grant or invite of an account at home here, on the verifier's threads.
 *
 * @throws ProtocolError `forbidden`; `invalid_signature` for an invite (03 section 5.6)
 */
export async function verifyAuthorization(
  context: RelayContext,
  authorization: Authorization | undefined,
  use: AuthorizationUse,
): Promise<Access> {
  if (authorization === undefined) return { kind: 'public' };
  const { network, storage } = context;
  checkAuthorizationUse(network, authorization, use);
  const { target, now } = use;
  const devices = await storage.read((tx) => readCurrentDevices(tx, target, now));
  const certificates = devices.map((device) => parseCertificate(device.certificate));
  const at = { state: { account: target, certificates }, now };
  return isGrant(network, authorization)
    ? await verifyGrantSignatures(context, authorization, at)
    : await verifyInviteSignature(context, authorization, at);
}

/**
 * Verifies each entry of a grant; invalid ones are ignored, one valid is enough (03 section 16.3).
 */
async function verifyGrantSignatures(
  { network, verifier }: RelayContext,
  grant: ContactGrant,
  at: DeviceStateAt,
): Promise<Access> {
  const body = canonicalWith(grant, { omit: ['signatures'] });
  const entries = [...grantSignatures(network, grant, at)].map(async ([deviceId, check]) => {
    const text = `${deviceId}\n${grant.signatures[deviceId]}\n${body}`;
    return (await isValid(verifier.verifyOnce(text, () => [check], 'grant'))) ? [deviceId] : [];
  });
  return { kind: 'signed', devices: (await Promise.all(entries)).flat() };
}

async function isValid(verification: Promise<void>): Promise<boolean> {
  try {
    await verification;
    return true;
  } catch (error) {
    if (error instanceof ProtocolError && error.code === 'invalid_signature') return false;
    throw error;
  }
}

/**
 * Verifies an invite's signature by its signer, a currently valid device of its issuer.
 * @throws ProtocolError `forbidden`, `invalid_signature`
 */
export async function verifyInviteSignature(
  { network, verifier }: RelayContext,
  invite: ContactInvite,
  at: DeviceStateAt,
): Promise<Access> {
  const checks = inviteSignatures(network, invite, at);
  await verifier.verifyOnce(canonicalJson(invite), () => checks, 'invite');
  return { kind: 'signed', devices: [invite.signer_device_id] };
}

/**
 * Refuses a request that the account's current state does not allow.
 *
 * @param target.current IDs of the account's currently valid devices
 * @throws ProtocolError `forbidden`
 */
export async function requireAccess(
  tx: Reader,
  access: Access,
  target: { readonly account: string; readonly current: ReadonlySet<string> },
): Promise<void> {
  if (access.kind === 'own') return;
  if (access.kind === 'public') {
    if (await readPublicDiscovery(tx, target.account)) return;
    throw new ProtocolError(
      'forbidden',
      'public discovery of the account is off: send a grant or an invite',
    );
  }
  if (access.devices.some((deviceId) => target.current.has(deviceId))) return;
  throw new ProtocolError('forbidden', 'no currently valid device signed the authorization');
}
