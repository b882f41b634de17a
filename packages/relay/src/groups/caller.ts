import {
  currentMember,
  type DeviceCertificate,
  deviceSignatures,
  type GroupMember,
  isGroupManager,
  type JsonObject,
  ProtocolError,
} from '@posthouse/protocol';
import { type Device, parseCertificate, requireCallingDevice } from '../accounts/index.ts';
import type { DeviceSession, Session } from '../call.ts';
import type { RelayContext } from '../context.ts';
import type { Reader } from '../storage/types.ts';
import type { Signer } from './event-store.ts';
import { type LoadedGroup, loadGroup } from './view.ts';

/** The calling device with the certificate it has now. */
export interface Caller {
  readonly account: string;
  readonly deviceId: string;
  readonly signer: Signer;
  readonly certificate: DeviceCertificate;
}

/**
 * The calling device as a snapshot has it.
 * @throws ProtocolError `unauthorized` where it was removed meanwhile
 */
export async function requireCaller(
  tx: Reader,
  session: DeviceSession,
  now: number,
): Promise<Caller> {
  return callerFrom(session, await requireCallingDevice(tx, session, now));
}

function callerFrom({ account }: DeviceSession, device: Device): Caller {
  const { deviceId, certificateId, certificate } = device;
  return {
    account,
    deviceId,
    signer: { deviceId, certificateId, certificate },
    certificate: parseCertificate(certificate),
  };
}

/** The calling device of a member. */
export interface CallingMember {
  readonly caller: Caller;
  readonly group: LoadedGroup;
  readonly member: GroupMember;
}

/**
 * The calling device, of an account that is a member of the group and not banned.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
export async function requireMember(
  tx: Reader,
  session: DeviceSession,
  { groupId, now }: { readonly groupId: string; readonly now: number },
): Promise<CallingMember> {
  const caller = await requireCaller(tx, session, now);
  const group = await loadGroup(tx, groupId, [session.account]);
  return { caller, group, member: currentMember(group.view, session.account) };
}

/**
 * As {@link requireMember}, for what owner and administrators alone may do.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
export async function requireManager(
  tx: Reader,
  session: DeviceSession,
  place: { readonly groupId: string; readonly now: number },
): Promise<CallingMember> {
  const calling = await requireMember(tx, session, place);
  if (isGroupManager(calling.member.role)) return calling;
  throw new ProtocolError('forbidden', 'the account is neither owner nor administrator');
}

/**
 * Verifies the signature of an object by the calling device (05 §3.1), before any transaction that
 * depends on it. A device keeps its keys under its ID, so that a certificate renewed meanwhile
 * changes nothing.
 *
 * @throws ProtocolError `unauthorized`, `invalid_signature`
 */
export async function verifyOwnSignature(
  { network, storage, verifier }: RelayContext,
  object: JsonObject & { readonly device_signature: string },
  { session, now }: { readonly session: DeviceSession; readonly now: number },
): Promise<Caller> {
  const caller = await storage.read((tx) => requireCaller(tx, session, now));
  await verifier.verify(deviceSignatures(network, object, caller.certificate), 'device_signature');
  return caller;
}

/**
 * The account an object declares is the calling one (05 §12.4): judged before its signature.
 * @throws ProtocolError `forbidden`
 */
export function requireOwnAccount(session: Session | undefined, account: string): void {
  if (account === session?.account) return;
  throw new ProtocolError('forbidden', 'the object speaks for another account');
}
