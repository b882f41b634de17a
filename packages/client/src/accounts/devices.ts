/** Adds, renews and removes the account's devices (03 §11.2, §18). */
import {
  type AccountDeviceState,
  type AccountSigner,
  addGrantSignature,
  currentDevices,
  type DeviceCertificate,
  deriveDeviceId,
  devicesOf,
  isCertificateCurrent,
  signDeviceCertificate,
  validGrantDevices,
} from '@posthouse/protocol';
import { accountIdentity } from '../connect/session.ts';
import { contactRows, putContact } from '../contacts/contact-rows.ts';
import { nextUpdatedAt } from '../contacts/relationship-rules.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError } from '../errors.ts';
import { historyStates } from '../own-devices/hand-over-rows.ts';
import { runTasks } from '../sync/run-tasks.ts';
import { enqueueTask, pendingTasks } from '../sync/tasks.ts';
import { ownCertificates, ownKey } from './account-rows.ts';
import {
  approveDevice,
  type DeviceApproval,
  type DeviceRequest,
  makeDeviceApproval,
} from './device-pairing.ts';
import { resolveOwnState } from './device-states.ts';
import { certificateLead, certificateLifetime } from './new-device.ts';
import { publishDevices, withCertificate } from './publish-devices.ts';
import { usableRoute } from './routes.ts';

/** One device of the account, for display. */
export interface DeviceInfo {
  readonly deviceId: string;
  /** Whether it is the device of this store. */
  readonly isThisDevice: boolean;
  /** Whether its certificate is valid now. */
  readonly isValidNow: boolean;
  /** Unix seconds. */
  readonly notBefore: number;
  readonly expiresAt: number;
  /** Whether this device handed its messages to it, or is doing so. */
  readonly history?: 'handing-over' | 'handed-over';
}

interface SigningCall {
  readonly signer: AccountSigner;
  readonly signal: AbortSignal;
}

/** Reads the devices of the current state from the home relay. */
export async function listDevices(core: AccountCore, signal: AbortSignal): Promise<DeviceInfo[]> {
  const { network, account, device, clock } = core;
  const state = await resolveOwnState(core, await core.home(), { account, signal });
  const now = unixSeconds(clock);
  const histories = await core.store.read(historyStates);
  return [...devicesOf(network, state)].map(([deviceId, certificate]) => {
    const history = histories.get(deviceId);
    return {
      deviceId,
      isThisDevice: deviceId === device.deviceId,
      isValidNow: isCertificateCurrent(certificate, now),
      notBefore: certificate.not_before,
      expiresAt: certificate.expires_at,
      ...(history !== undefined && { history }),
    };
  });
}

/**
 * Approves the request of a new device, or a renewal of an existing one.
 *
 * @throws ClientError `verification_failed`, `invalid_input`
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function approveRequest(
  core: AccountCore,
  request: DeviceRequest,
  act: SigningCall,
): Promise<DeviceApproval> {
  const certificate = await approveDevice(core.network, act.signer, request);
  await publish(core, act, (current) => withCertificate(core, current, certificate));
  const route = await core.store.read((tx) => usableRoute(core, tx, core.account));
  if (route === undefined)
    throw new ClientError(
      'not_set_up',
      'the account has no usable route: set it up again with its account key',
    );
  return makeDeviceApproval(core.network, { certificate, route });
}

/**
 * Renews this device's certificate; keys and ID stay.
 * @param act.onlyIfListed does not add the device again if it was removed
 * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function renewThisDevice(
  core: AccountCore,
  act: SigningCall & { readonly onlyIfListed?: boolean },
): Promise<DeviceCertificate> {
  const now = unixSeconds(core.clock);
  const certificate = await signDeviceCertificate(core.network, {
    account: act.signer,
    device: core.device,
    notBefore: now - certificateLead,
    expiresAt: now - certificateLead + certificateLifetime,
  });
  // Stored before it is published, so that a crash never leaves a device without its certificate.
  await core.store.write((tx) => ownCertificates.put(tx, ownKey, certificate));
  const { deviceId } = core.device;
  await publish(core, act, (current) => {
    const isListed = current.some((item) => deriveDeviceId(core.network, item) === deviceId);
    if (act.onlyIfListed && !isListed)
      throw new ClientError('invalid_input', `${deviceId} was removed: add the device again`);
    return withCertificate(core, current, certificate);
  });
  return certificate;
}

/**
 * Removes a device. Contacts write to this account with grants signed by its devices, so every
 * contact first receives a signature of a remaining device (03 §18.2).
 *
 * @param act.force removes it even if contacts do not receive another signature
 * @throws ClientError `invalid_input`
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function removeDevice(
  core: AccountCore,
  deviceId: string,
  act: SigningCall & { readonly force: boolean },
): Promise<void> {
  const { network, account } = core;
  const state = await resolveOwnState(core, await core.home(), { account, signal: act.signal });
  if (!devicesOf(network, state).has(deviceId)) {
    throw new ClientError(
      'invalid_input',
      `${deviceId} is not a device of the account: list the devices for their IDs`,
    );
  }
  if (!act.force) await renewGrantsWithout(core, { deviceId, state, signal: act.signal });
  await publish(core, act, (current) =>
    current.filter((item) => deriveDeviceId(network, item) !== deviceId),
  );
}

/** Sends each contact a grant that stays valid without one device. */
async function renewGrantsWithout(
  core: AccountCore,
  leaving: {
    readonly deviceId: string;
    readonly state: AccountDeviceState;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { network, device, clock, store } = core;
  const now = unixSeconds(clock);
  const stays = currentDevices(network, leaving.state, now);
  stays.delete(leaving.deviceId);
  const state = { ...leaving.state, certificates: [...stays.values()] };
  await store.write(async (tx) => {
    for (const row of await contactRows(tx)) {
      const { record } = row;
      const grant = record?.grant_to_contact;
      if (record === undefined || grant === undefined) continue;
      if (validGrantDevices(network, grant, { state, now }).length > 0) continue;
      if (!stays.has(device.deviceId)) {
        throw new ClientError(
          'contacts_unreached',
          `${row.account} has no grant of another device yet: remove the device from another one`,
        );
      }
      const signed = addGrantSignature(network, grant, device);
      const updated = { ...record, grant_to_contact: signed, updated_at: nextUpdatedAt(core, row) };
      await putContact(tx, { ...row, record: updated });
      await enqueueTask(tx, { kind: 'update-grant', account: row.account });
      await enqueueTask(tx, { kind: 'sync-contact', account: row.account });
    }
  });
  await runTasks(core, leaving.signal);
  const left = await store.read((tx) => pendingTasks.list(tx, { prefix: 'update-grant/' }));
  if (left.length > 0) {
    throw new ClientError(
      'contacts_unreached',
      'not every contact received the new grant: try again, or remove with `force`',
    );
  }
}

/** Publishes over an account session, which needs no valid device. */
async function publish(
  core: AccountCore,
  { signer, signal }: SigningCall,
  change: (current: readonly DeviceCertificate[]) => DeviceCertificate[],
): Promise<void> {
  const { relayId } = await core.home();
  await using connection = core.connect(relayId, accountIdentity(core.network, signer));
  await publishDevices(core, connection, { signer, change, signal });
  await core.store.write(async (tx) => {
    for (const { account, relationship } of await contactRows(tx)) {
      if (relationship.status === 'active')
        await enqueueTask(tx, { kind: 'tell-devices', account });
    }
  });
}
