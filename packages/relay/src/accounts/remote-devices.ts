/** The status of devices whose accounts are at home elsewhere: stored and used (07 §C5, §C9). */
import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { capSessions, revokeSessions } from '../sessions/session-store.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { homeOf } from './home.ts';
import { type DeviceKey, markInactive, unmarkInactive } from './inactive-store.ts';
import {
  deleteRemoteDevice,
  type RemoteDevice,
  readRemoteDevice,
  writeRemoteCertificate,
  writeRemoteDevice,
} from './remote-device-store.ts';
import type { Device } from './store.ts';

/** A device with the certificate that it signs in with. */
export interface PresentedDevice extends DeviceKey, Pick<Device, 'certificateId' | 'certificate'> {}

/** What a home relay answered about a device, and what was known when it was asked. */
export interface DeviceAnswer extends DeviceKey {
  readonly relayId: string;
  /** The device's `generation` when it was asked. */
  readonly generation: number;
  /** End of the device's latest certificate, Unix seconds; `undefined` for an inactive device. */
  readonly expiresAt: number | undefined;
  /** When it was asked, Unix seconds. */
  readonly confirmedAt: number;
}

/** What became of an answer in the transaction that stores it. */
export type StoredAnswer =
  /** The home or the device changed since the question: ask again. */
  | { readonly kind: 'superseded' }
  | { readonly kind: 'active'; readonly expiresAt: number; readonly notices: readonly Notice[] }
  /** Its sessions ended; if it had access to groups, it was marked as inactive. */
  | { readonly kind: 'inactive'; readonly notices: readonly Notice[] };

/**
 * Stores an answer, with its effects on sessions (02 §10.2, §10.3). Called in a write of the
 * account.
 */
export async function storeDeviceAnswer(
  { clock, identity, limits }: RelayContext,
  tx: Writer,
  answer: DeviceAnswer,
): Promise<StoredAnswer> {
  const { account, deviceId, relayId, generation, expiresAt, confirmedAt } = answer;
  const now = clock.now();
  const home = await homeOf(tx, account, identity.relayId, now);
  const known = await readRemoteDevice(tx, answer);
  const isCurrent =
    home.kind === 'elsewhere' &&
    home.relayId === relayId &&
    known?.generation === generation &&
    (expiresAt === undefined || now < expiresAt);
  if (!isCurrent) return { kind: 'superseded' };
  const confirmed = { ...known, relayId, confirmedAt, isStale: false, failures: 0 };
  if (expiresAt === undefined) {
    const forgetAt = now + limits.remoteDeviceRetention;
    return { kind: 'inactive', notices: await endDevice(tx, confirmed, forgetAt) };
  }
  const nextCheckAt = Math.min(expiresAt, confirmedAt + limits.deviceStatusRecheck);
  await writeRemoteDevice(tx, { ...confirmed, status: 'active', expiresAt }, nextCheckAt);
  await unmarkInactive(tx, answer);
  if (known.status !== 'active' || expiresAt >= known.expiresAt) {
    return { kind: 'active', expiresAt, notices: [] };
  }
  await capSessions(tx, { account, deviceId }, expiresAt);
  return {
    kind: 'active',
    expiresAt,
    notices: [{ kind: 'capped', account, deviceId, expiresAt }],
  };
}

async function endDevice(
  tx: Writer,
  device: RemoteDevice,
  forgetAt: number,
): Promise<readonly Notice[]> {
  const { account, deviceId } = device;
  if (device.status === 'asked') {
    await deleteRemoteDevice(tx, device);
    return [];
  }
  await writeRemoteDevice(tx, { ...device, status: 'inactive' }, forgetAt);
  if (device.status === 'inactive') return [];
  await revokeSessions(tx, account, [deviceId]);
  await markInactive(tx, device);
  return [{ kind: 'revoked', account, deviceIds: [deviceId] }];
}

/**
 * Confirms in the transaction of a new session that an answer still holds, and stores it.
 *
 * @param presented the certificate that events of the device are stored with from now on
 */
export async function admitRemoteDevice(
  context: RelayContext,
  tx: Writer,
  { presented, answer }: { readonly presented: PresentedDevice; readonly answer: DeviceAnswer },
): Promise<StoredAnswer> {
  const stored = await storeDeviceAnswer(context, tx, answer);
  if (stored.kind === 'active') await writeRemoteCertificate(tx, presented, presented);
  return stored;
}

/** Tells whether a device may act by what is stored of it. */
export function isUsable({ status, isStale, expiresAt }: RemoteDevice, now: number): boolean {
  return status === 'active' && !isStale && now < expiresAt;
}

/**
 * Reads a calling device of an account at home elsewhere.
 *
 * @returns `undefined` if it is not known as a current device
 * @throws ProtocolError `temporarily_unavailable` while its home relay must be asked again
 */
export async function readCallingRemoteDevice(
  tx: Reader,
  device: DeviceKey,
  now: number,
): Promise<RemoteDevice | undefined> {
  const known = await readRemoteDevice(tx, device);
  if (known?.status !== 'active' || known.expiresAt <= now) return undefined;
  if (!known.isStale) return known;
  throw new ProtocolError(
    'temporarily_unavailable',
    "the device's home relay is being asked for it: try again",
  );
}

/**
 * Refuses a device that its home relay has confirmed as inactive.
 *
 * @throws ProtocolError `unauthorized`
 */
export async function requireNotInactive(tx: Reader, device: DeviceKey): Promise<void> {
  const known = await readRemoteDevice(tx, device);
  if (known?.status !== 'inactive') return;
  throw new ProtocolError('unauthorized', 'the device was removed');
}
