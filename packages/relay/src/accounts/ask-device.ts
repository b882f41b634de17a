/** Asking home relays for the status of their devices (07 §C5). */
import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { askHome } from './ask-home.ts';
import { locate } from './home.ts';
import {
  countAsked,
  type RemoteDevice,
  readRemoteDevice,
  writeRemoteDevice,
} from './remote-device-store.ts';
import { type DeviceAnswer, isUsable, type PresentedDevice } from './remote-devices.ts';
import { homeRelay } from './rules.ts';

/**
 * Confirms a device whose proof was verified: from the answer of the last five minutes, or by
 * asking its home relay.
 *
 * @param options.asker as for {@link locate}
 * @returns `undefined` if the account is at home here
 * @throws ProtocolError of {@link askHome}; `rate_limited` if too many devices of the account wait
 *   for a first answer
 */
export async function confirmRemoteDevice(
  context: RelayContext,
  device: PresentedDevice,
  { asker }: { readonly asker: string },
): Promise<DeviceAnswer | undefined> {
  const { account, deviceId } = device;
  const { clock, limits, storage } = context;
  const home = await locate(context, account, { now: clock.now(), asker });
  if (home.kind === 'local') return undefined;
  const relayId = homeRelay(home);
  const known =
    (await storage.read((tx) => readRemoteDevice(tx, device))) ??
    (await beginQuestion(context, device, relayId));
  const { generation, expiresAt, confirmedAt } = known;
  const isRecent = clock.now() - confirmedAt < limits.deviceStatusCache;
  if (isUsable(known, clock.now()) && known.relayId === relayId && isRecent) {
    return { account, deviceId, relayId, generation, expiresAt, confirmedAt };
  }
  return await askDevice(context, known);
}

/** Stores a device that was never asked for: a hint that comes before the answer must count. */
async function beginQuestion(
  { clock, limits, storage }: RelayContext,
  presented: PresentedDevice,
  relayId: string,
): Promise<RemoteDevice> {
  const { account, deviceId, certificateId, certificate } = presented;
  return await storage.write(`account:${account}`, async (tx) => {
    const known = await readRemoteDevice(tx, presented);
    if (known !== undefined) return known;
    if ((await countAsked(tx, account)) >= limits.askedDevices) {
      const data = { retry_after: 1 };
      throw new ProtocolError('rate_limited', 'too many devices of the account are asked for', {
        data,
      });
    }
    const now = clock.now();
    const device: RemoteDevice = {
      ...{ account, deviceId, relayId, certificateId, certificate },
      ...{ status: 'asked', expiresAt: 0, confirmedAt: now, isStale: true },
      ...{ generation: 0, failures: 0 },
    };
    await writeRemoteDevice(tx, device, now + limits.remoteDeviceRetention);
    return device;
  });
}

/**
 * Asks the home relay for a device.
 *
 * @returns `undefined` if the account is at home here
 * @throws ProtocolError of {@link askHome}
 */
export async function askDevice(
  context: RelayContext,
  { account, deviceId, generation }: RemoteDevice,
): Promise<DeviceAnswer | undefined> {
  const confirmedAt = context.clock.now();
  const answer = await askHome(context, {
    account,
    method: 'device.status',
    params: { account, device_id: deviceId },
    caller: { account, deviceId },
    accept: (result) => {
      if (result.status === 'inactive') {
        if ('expires_at' in result) throw new ProtocolError('bad_request', 'expires_at');
        return undefined;
      }
      const { expires_at: expiresAt } = result;
      if (expiresAt > context.clock.now()) return expiresAt;
      throw new ProtocolError('bad_request', 'expires_at has passed');
    },
  });
  if (answer.kind === 'local') return undefined;
  const { relayId, value: expiresAt } = answer;
  return { account, deviceId, relayId, generation, expiresAt, confirmedAt };
}
