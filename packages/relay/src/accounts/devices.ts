import {
  type AccountDeviceState,
  type DeviceCertificate,
  deriveDeviceId,
  devicesOf,
  type Network,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { DeviceSession } from '../sessions/session.ts';
import { capSessions, revokeSessions } from '../sessions/session-store.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { homeOf } from './home.ts';
import { markInactive, readInactiveOf, unmarkInactive } from './inactive-store.ts';
import { deleteRemoteDevices, readRemoteDevices } from './remote-device-store.ts';
import { readCallingRemoteDevice, requireNotInactive } from './remote-devices.ts';
import { deleteStaged } from './staged-store.ts';
import {
  type Device,
  readCurrentDevice,
  readDevices,
  type StoredState,
  writeState,
} from './store.ts';
import { statusHintsJobName } from './store-route.ts';
import { addHints } from './watcher-store.ts';

/**
 * Name of the job that ends the group access of inactive devices; woken when a device becomes one.
 */
export const inactiveDevicesJobName = 'accounts.inactive-devices';
/** Name of the job that finds expired certificates; woken when a device state changes. */
export const expiredDevicesJobName = 'accounts.expired-devices';

/** A currently valid device of an account at home here. */
export interface CurrentDevice {
  readonly certificate: DeviceCertificate;
  /** End of the certificate, Unix seconds. */
  readonly expiresAt: number;
}

/**
 * Reads the device's certificate in the authoritative state if its period covers `now`. Does not
 * check that the account is at home here; {@link homeOf} does.
 */
export async function currentDevice(
  tx: Reader,
  account: string,
  deviceId: string,
  now: number,
): Promise<CurrentDevice | undefined> {
  const device = await readCurrentDevice(tx, { account, deviceId }, now);
  if (device === undefined) return undefined;
  return { certificate: parseCertificate(device.certificate), expiresAt: device.expiresAt };
}

/** Parses a stored certificate, which was verified before it was stored. */
export function parseCertificate(text: string): DeviceCertificate {
  return parseJson(text) as unknown as DeviceCertificate;
}

/**
 * Adds the key of a device. Its certificate is parsed when the key is first asked for: a state may
 * have forty of 4 KiB, and a call needs few.
 */
export function withKey<T extends { readonly certificate: string }>(device: T) {
  let key: string | undefined;
  return {
    ...device,
    get signing_public_key(): string {
      key ??= parseCertificate(device.certificate).signing_public_key;
      return key;
    },
  };
}

/** A device with the certificate that events of it are stored with. */
export type Signer = Pick<Device, 'deviceId' | 'certificateId' | 'certificate'>;

/**
 * Reads the calling device in the transaction that serves it: its session may have ended since the
 * session was checked. Of an account at home here it is in the current state; of any other account
 * its home relay has confirmed it. `devices` has no rows of accounts at home elsewhere.
 *
 * @throws ProtocolError `unauthorized`; `temporarily_unavailable` while its home relay must be asked
 */
export async function requireCallingDevice(
  tx: Reader,
  session: DeviceSession,
  now: number,
): Promise<Signer> {
  const device =
    (await readCurrentDevice(tx, session, now)) ??
    (await readCallingRemoteDevice(tx, session, now));
  if (device === undefined) throw new ProtocolError('unauthorized', 'the device was removed');
  return device;
}

/**
 * As {@link requireCallingDevice} if this relay holds the account's current state. Otherwise the
 * session permits the call, which dispatch checked, until the home relay has answered that the
 * device is inactive (02 §10.3).
 *
 * @throws ProtocolError `unauthorized`
 */
export async function confirmDevice(
  { identity }: RelayContext,
  tx: Reader,
  { session, now }: { readonly session: DeviceSession; readonly now: number },
): Promise<void> {
  const home = await homeOf(tx, session.account, identity.relayId, now);
  if (home.kind === 'local') await requireCallingDevice(tx, session, now);
  else await requireNotInactive(tx, session);
}

/** Makes the rows of a state's certificates. */
export function devicesFrom(network: Network, state: AccountDeviceState): Device[] {
  return [...devicesOf(network, state)].map(([deviceId, certificate]) => ({
    deviceId,
    notBefore: certificate.not_before,
    expiresAt: certificate.expires_at,
    ...certificateRow(certificate),
  }));
}

function certificateRow(certificate: DeviceCertificate) {
  const text = canonicalJson(certificate);
  return { certificateId: digest(text), certificate: text };
}

/** Makes the signer that a certificate names, for an event of earlier that was signed with it. */
export function deviceSigner(network: Network, certificate: DeviceCertificate): Signer {
  return { deviceId: deriveDeviceId(network, certificate), ...certificateRow(certificate) };
}

/**
 * Makes a state authoritative and deletes the pre-stored one. In the same transaction the sessions
 * of devices that are not valid any more end, these devices are marked inactive, and sessions of
 * the others are shortened to their certificates (03 §4.1, 02 §10.2).
 *
 * @returns notices to publish after the commit
 */
export async function activateState(
  tx: Writer,
  account: string,
  next: {
    readonly state: StoredState;
    readonly devices: readonly Device[];
    readonly now: number;
  },
): Promise<Notice[]> {
  const { state, devices, now } = next;
  const before = await readDevices(tx, account);
  // Devices that signed in here while the account was at home elsewhere.
  const remote = await readRemoteDevices(tx, account);
  if (remote.length > 0) await deleteRemoteDevices(tx, account);
  await writeState(tx, account, { state, devices });
  await deleteStaged(tx, account);
  const current = new Map(
    devices
      .filter((device) => device.notBefore <= now && now < device.expiresAt)
      .map((device) => [device.deviceId, device.expiresAt]),
  );
  // A device that is valid again before its access ended keeps it.
  for (const device of await readInactiveOf(tx, account)) {
    if (current.has(device.deviceId)) await unmarkInactive(tx, device);
  }
  await addHints(tx, account, { now, deviceIds: changedDevices(before, devices) });
  const { revision } = state;
  // The removed devices' connections end first; they get no hint (03 section 6).
  return [
    ...(await endSessions(tx, account, { before: [...before, ...remote], current })),
    { kind: 'device-state', account, revision, deviceIds: [...current.keys()] },
  ];
}

/** Returns the IDs of devices that were removed or have another certificate. */
function changedDevices(before: readonly Device[], after: readonly Device[]): string[] {
  const kept = new Set(after.map(({ certificateId }) => certificateId));
  return before.filter(({ certificateId }) => !kept.has(certificateId)).map((it) => it.deviceId);
}

/** Ends sessions of removed devices and shortens others to their certificates. */
async function endSessions(
  tx: Writer,
  account: string,
  change: {
    readonly before: readonly Pick<Device, 'deviceId' | 'expiresAt'>[];
    /** Expiry of each currently valid device's certificate, by device ID. */
    readonly current: ReadonlyMap<string, number>;
  },
): Promise<Notice[]> {
  const { before, current } = change;
  const notices: Notice[] = [];
  const ended = before.map(({ deviceId }) => deviceId).filter((id) => !current.has(id));
  if (ended.length > 0) {
    await revokeSessions(tx, account, ended);
    for (const deviceId of ended) await markInactive(tx, { account, deviceId });
    notices.push({ kind: 'revoked', account, deviceIds: ended });
  }
  for (const { deviceId, expiresAt: previously } of before) {
    const expiresAt = current.get(deviceId);
    if (expiresAt === undefined || expiresAt >= previously) continue;
    await capSessions(tx, { account, deviceId }, expiresAt);
    notices.push({ kind: 'capped', account, deviceId, expiresAt });
  }
  return notices;
}

/** Wakes the jobs that a new device state gives work to. Called after the commit with its notices. */
export function wakeDeviceJobs({ jobs }: RelayContext, notices: readonly Notice[] = []): void {
  const kinds = new Set(notices.map(({ kind }) => kind));
  if (kinds.has('revoked')) jobs.wake(inactiveDevicesJobName);
  if (kinds.has('device-state')) {
    jobs.wake(expiredDevicesJobName);
    jobs.wake(statusHintsJobName);
  }
}
