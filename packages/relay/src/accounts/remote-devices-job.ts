import { ProtocolError } from '@posthouse/protocol';
import type { Job, RelayContext } from '../context.ts';
import { askDevice } from './ask-device.ts';
import { inactiveDevicesJobName } from './devices.ts';
import {
  claimDueDevices,
  deleteRemoteDevice,
  nextDeviceCheck,
  postponeCheck,
  type RemoteDevice,
  readDeviceUses,
  readRemoteDevice,
} from './remote-device-store.ts';
import { storeDeviceAnswer } from './remote-devices.ts';
import { retryDelay } from './rules.ts';
import { remoteDevicesJobName } from './store-route.ts';

/** Devices claimed at once. */
const batchSize = 64;
/** Seconds after which a claimed device is due again, whatever became of the process. */
const leaseSeconds = 120;

/**
 * Asks home relays again for the devices that use this relay: at once after a hint, when their
 * certificate ends, and every day (07 §C9, 05 §7.3). Without an answer nothing ends. A device that
 * has neither a session nor access to a group is not asked for, and forgotten a day later.
 */
export const remoteDevicesJob: Job = {
  name: remoteDevicesJobName,
  async run(context, signal) {
    const { storage } = context;
    while (!signal.aborted) {
      const due = await claim(context);
      if (due.length === 0) break;
      // A relay that does not answer delays the devices of its own accounts only.
      const lanes = Map.groupBy(due, ({ relayId }) => relayId);
      const outcomes = await Promise.allSettled(
        [...lanes.values()].map((devices) => checkDevices(context, devices, signal)),
      );
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    }
    return await storage.read(nextDeviceCheck);
  },
};

async function claim({ clock, storage }: RelayContext): Promise<RemoteDevice[]> {
  const now = clock.now();
  const next = await storage.read(nextDeviceCheck);
  if (next === undefined || next > now) return [];
  return await storage.write(remoteDevicesJobName, (tx) =>
    claimDueDevices(tx, { now, leaseUntil: now + leaseSeconds, batchSize }),
  );
}

/** Checks the devices of one relay, one after another. */
async function checkDevices(
  context: RelayContext,
  devices: readonly RemoteDevice[],
  signal: AbortSignal,
): Promise<void> {
  let isReachable = true;
  for (const device of devices) {
    if (signal.aborted) return;
    if (await forgetUnused(context, device)) continue;
    try {
      if (isReachable) await checkDevice(context, device);
      else await postpone(context, device);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (error.code === 'temporarily_unavailable') isReachable = false;
      await postpone(context, device);
    }
  }
}

/** Puts a device without a use off, or deletes it; returns false for one with a use. */
async function forgetUnused(
  { clock, limits, storage }: RelayContext,
  device: RemoteDevice,
): Promise<boolean> {
  return await storage.write(`account:${device.account}`, async (tx) => {
    const now = clock.now();
    const known = await readRemoteDevice(tx, device);
    if (known === undefined) return true;
    const { hasSession, hasOpenInterval } = await readDeviceUses(tx, known, now);
    if (hasSession || hasOpenInterval) return false;
    const forgetAt = known.confirmedAt + limits.remoteDeviceRetention;
    if (forgetAt <= now) await deleteRemoteDevice(tx, known);
    else await postponeCheck(tx, known, { failures: 0, nextCheckAt: forgetAt });
    return true;
  });
}

async function checkDevice(context: RelayContext, device: RemoteDevice): Promise<void> {
  const { bus, jobs, storage } = context;
  const answer = await askDevice(context, device);
  // Home here now: its rows went with the route.
  if (answer === undefined) return;
  const stored = await storage.write(`account:${device.account}`, (tx) =>
    storeDeviceAnswer(context, tx, answer),
  );
  if (stored.kind === 'superseded') return;
  if (stored.notices.length > 0) bus.publish(stored.notices);
  if (stored.kind === 'inactive') jobs.wake(inactiveDevicesJobName);
}

async function postpone(
  { clock, limits, storage }: RelayContext,
  device: RemoteDevice,
): Promise<void> {
  const nextCheckAt = clock.now() + retryDelay(device.failures, limits);
  const failures = device.failures + 1;
  await storage.write(`account:${device.account}`, (tx) =>
    postponeCheck(tx, device, { failures, nextCheckAt }),
  );
}
