import {
  type Authorization,
  type AuthorizationUse,
  type ContactGrant,
  type ContactInvite,
  checkAuthorizationUse,
  type DeviceCertificate,
  deviceSignatures,
  grantSignaturesBy,
  inviteSigner,
  isGrant,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { Reader } from '../storage/types.ts';
import { withKey } from './devices.ts';
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

/** Currently valid devices of one account, by device ID. */
type SigningDevices = ReadonlyMap<string, Pick<DeviceCertificate, 'signing_public_key'>>;

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
  return await verifySigned(context, {
    authorization,
    text: canonicalJson(authorization),
    devices: new Map(devices.map((device) => [device.deviceId, withKey(device)])),
  });
}

/** An authorization with those that may have signed it. */
interface SignedAuthorization<A extends Authorization = Authorization> {
  readonly authorization: A;
  /** Its Canonical JSON. */
  readonly text: string;
  /** The currently valid devices of its issuer. */
  readonly devices: SigningDevices;
}

/**
 * Verifies the signatures of an authorization that `checkAuthorizationUse` has passed.
 *
 * @throws ProtocolError `forbidden`, `invalid_signature` for an invite
 */
export async function verifySigned(
  context: RelayContext,
  { authorization, ...signed }: SignedAuthorization,
): Promise<Access> {
  return isGrant(context.network, authorization)
    ? await verifyGrantSignatures(context, { authorization, ...signed })
    : await verifyInviteSignature(context, { authorization, ...signed });
}

/**
 * Returns whether an authorization is a grant of which the signature of one of the devices verified before:
 * then {@link verifySigned} need not be asked. Reads only memory.
 */
export function isKnownGrant(
  { network, verifier }: RelayContext,
  { authorization, text, devices }: SignedAuthorization,
): boolean {
  if (!isGrant(network, authorization)) return false;
  for (const deviceId of devices.keys()) {
    if (!Object.hasOwn(authorization.signatures, deviceId)) continue;
    if (verifier.hasVerified(signedGrant(deviceId, text), 'grant')) return true;
  }
  return false;
}

/** What is remembered of a grant that a device signed. */
function signedGrant(deviceId: string, text: string): string {
  return `${deviceId}\n${text}`;
}

/**
 * Verifies each entry of a grant; invalid ones are ignored, one valid is enough (03 section 16.3).
 */
async function verifyGrantSignatures(
  { network, verifier }: RelayContext,
  { authorization: grant, text, devices }: SignedAuthorization<ContactGrant>,
): Promise<Access> {
  const verified: Promise<readonly string[]>[] = [];
  for (const signer of devices) {
    const [deviceId] = signer;
    if (!Object.hasOwn(grant.signatures, deviceId)) continue;
    const checks = () => [...grantSignaturesBy(network, grant, new Map([signer])).values()];
    const verification = verifier.verifyOnce(signedGrant(deviceId, text), checks, 'grant');
    verified.push(isValid(verification).then((isSigner) => (isSigner ? [deviceId] : [])));
  }
  return { kind: 'signed', devices: (await Promise.all(verified)).flat() };
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
  { authorization: invite, text, devices }: SignedAuthorization<ContactInvite>,
): Promise<Access> {
  const signer = inviteSigner(invite, devices);
  const checks = () => deviceSignatures(network, invite, signer);
  await verifier.verifyOnce(text, checks, 'invite');
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
