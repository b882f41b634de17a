import {
  type AccountDeviceState,
  type DeviceCertificate,
  devicesOf,
  type Network,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { HandlerResult } from '../dispatch/handler.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { DeviceSession } from '../sessions/session.ts';
import { capSessions, revokeSessions } from '../sessions/session-store.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { homeOf } from './home.ts';
import { markInactive, readInactiveOf, unmarkInactive } from './inactive-store.ts';
import {
  type Device,
  deleteStaged,
  readCurrentDevice,
  readExpiries,
  type StoredState,
  writeState,
} from './store.ts';

/** The job that ends what devices had that became inactive; woken when some did. */
export const inactiveDevicesJobName = 'accounts.inactive-devices';
/** The job that finds expired certificates; woken when there are others than it has seen. */
export const expiredDevicesJobName = 'accounts.expired-devices';

/** A currently valid device of an account at home here. */
export interface CurrentDevice {
  readonly certificate: DeviceCertificate;
  /** Of the certificate, Unix seconds. */
  readonly expiresAt: number;
}

/**
 * The device's certificate in the authoritative state, where its period covers `now`. That the
 * account is at home here is another question: {@link homeOf}.
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

/** A certificate of this relay's own storage; it was verified before it was stored. */
export function parseCertificate(text: string): DeviceCertificate {
  return parseJson(text) as unknown as DeviceCertificate;
}

/**
 * The calling device, confirmed in the same snapshot as what it reads or writes: a session may
 * have ended between the look at it and this transaction.
 *
 * @throws ProtocolError `unauthorized`
 */
export async function requireCallingDevice(
  tx: Reader,
  session: DeviceSession,
  now: number,
): Promise<Device> {
  const device = await readCurrentDevice(tx, session, now);
  if (device === undefined) throw new ProtocolError('unauthorized', 'the device was removed');
  return device;
}

/**
 * As {@link requireCallingDevice} where this relay holds the account's current state; elsewhere the
 * session is all there is (02 section 10.3).
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
}

/** The rows of a state's certificates. */
export function devicesFrom(network: Network, state: AccountDeviceState): Device[] {
  return [...devicesOf(network, state)].map(([deviceId, certificate]) => {
    const text = canonicalJson(certificate);
    return {
      deviceId,
      notBefore: certificate.not_before,
      expiresAt: certificate.expires_at,
      certificateId: digest(text),
      certificate: text,
    };
  });
}

/**
 * Makes a state authoritative, with everything that follows from it: the pre-stored state is
 * settled, and in the same transaction sessions end of devices it does not permit now, which are
 * noted as inactive, and none outlives the certificate its device has now (03 §4.1, 02 §10.2).
 *
 * @returns what connections must hear of it
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
  const before = await readExpiries(tx, account);
  await writeState(tx, account, { state, devices });
  await deleteStaged(tx, account);
  const current = new Map(
    devices
      .filter((device) => device.notBefore <= now && now < device.expiresAt)
      .map((device) => [device.deviceId, device.expiresAt]),
  );
  // Whose access did not end meanwhile keeps it: in those groups nothing has happened.
  for (const device of await readInactiveOf(tx, account)) {
    if (current.has(device.deviceId)) await unmarkInactive(tx, device);
  }
  const { revision } = state;
  // First the removed devices are cut off; the hint is not for them either (03 section 6).
  return [
    ...(await endSessions(tx, account, { before, current })),
    { kind: 'device-state', account, revision, deviceIds: [...current.keys()] },
  ];
}

/** Sessions of removed devices end now, those of kept ones with the certificate. */
async function endSessions(
  tx: Writer,
  account: string,
  change: {
    readonly before: readonly Pick<Device, 'deviceId' | 'expiresAt'>[];
    /** When the certificates of the devices end that are valid now, by ID. */
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

/**
 * Has the access of removed devices ended soon, and that of others when their certificates end;
 * called with what the commit led to.
 */
export function wakeDeviceJobs({ jobs }: RelayContext, outcome: HandlerResult): HandlerResult {
  const kinds = new Set(outcome.notices?.map(({ kind }) => kind));
  if (kinds.has('revoked')) jobs.wake(inactiveDevicesJobName);
  if (kinds.has('device-state')) jobs.wake(expiredDevicesJobName);
  return outcome;
}
