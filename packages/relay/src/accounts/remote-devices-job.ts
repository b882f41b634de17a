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
/** Home relays asked at once. */
const maxLanes = 64;
/** Seconds after which a claimed device is due again, whatever became of the process. */
const leaseSeconds = 120;
/** Seconds for the devices of one claim; those that a slow relay leaves over are claimed again. */
const laneSeconds = 60;
/** Milliseconds between reads of newly due devices while slow relays are asked. */
const pollInterval = 1_000;

/**
 * Asks home relays again for the devices that use this relay: at once after a hint, when their
 * certificate ends, and every day (07 §C9, 05 §7.3). Without an answer nothing ends. A relay that
 * does not answer delays the devices of its own accounts only. A device that has neither a session
 * nor access to a group is not asked for, and forgotten a day later.
 */
export const remoteDevicesJob: Job = {
  name: remoteDevicesJobName,
  async run(context, signal, onWake) {
    const { clock, storage } = context;
    const lanes = new Set<string>();
    const failures: unknown[] = [];
    let changed = Promise.withResolvers<void>();
    using _wakes = onWake(() => changed.resolve());
    for (;;) {
      const isOver = signal.aborted || failures.length > 0;
      // A relay that is done during the claim may have devices that are due again.
      const isLast = lanes.size === 0;
      const due = isOver ? [] : await claim(context, lanes);
      for (const [relayId, devices] of Map.groupBy(due, (device) => device.relayId)) {
        lanes.add(relayId);
        void checkDevices(context, devices, signal)
          .catch((error: unknown) => failures.push(error))
          .finally(() => {
            lanes.delete(relayId);
            changed.resolve();
          });
      }
      // One relay may have taken the whole batch.
      if (due.length > 0) continue;
      if (isLast) break;
      using _poll = clock.after(pollInterval, () => changed.resolve());
      await changed.promise;
      changed = Promise.withResolvers<void>();
    }
    if (failures.length > 0) throw failures[0];
    return await storage.read(nextDeviceCheck);
  },
};

/** Claims due devices of relays that are not being asked. */
async function claim(
  { clock, storage }: RelayContext,
  lanes: ReadonlySet<string>,
): Promise<RemoteDevice[]> {
  if (lanes.size >= maxLanes) return [];
  const now = clock.now();
  const next = await storage.read(nextDeviceCheck);
  if (next === undefined || next > now) return [];
  const claims = { now, leaseUntil: now + leaseSeconds, batchSize, without: [...lanes] };
  return await storage.write(remoteDevicesJobName, (tx) => claimDueDevices(tx, claims));
}

/** Checks the devices of one relay, one after another. */
async function checkDevices(
  context: RelayContext,
  devices: readonly RemoteDevice[],
  signal: AbortSignal,
): Promise<void> {
  const { clock } = context;
  const started = clock.monotonic();
  let isReachable = true;
  for (const device of devices) {
    if (signal.aborted || clock.monotonic() - started >= laneSeconds * 1_000) return;
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
