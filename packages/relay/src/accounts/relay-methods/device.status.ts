import { checkAccountId } from '@posthouse/protocol';
import type { RelayContext } from '../../context.ts';
import type { RelayHandler } from '../../dispatch/relay-handler.ts';
import type { Reader } from '../../storage/types.ts';
import { type CurrentDevice, currentDevice } from '../devices.ts';
import { homeOf, locate } from '../home.ts';
import { requireHome } from '../rules.ts';
import { readAskedAt, type Watcher, writeWatcher } from '../watcher-store.ts';

/**
 * `device.status` of an account at home here (07 §C5): answered from its authoritative state only.
 * An inactive device gets no reason. A relay that gets `active` is remembered, and sent a hint when
 * the device changes (07 §C9).
 */
export const deviceStatus: RelayHandler<'device.status'> = async (context, { params, peer }) => {
  const { clock, limits, network, storage } = context;
  const { account, device_id: deviceId } = params;
  const { relayId } = peer;
  checkAccountId(network, account, 'account');
  requireHome(await locate(context, account, { now: clock.now(), asker: `relay ${relayId}` }));
  const watcher = { account, deviceId, relayId };
  const known = await storage.read(async (tx) => ({
    device: await readDevice(context, tx, watcher),
    askedAt: await readAskedAt(tx, watcher),
  }));
  const isRemembered =
    known.askedAt !== undefined && clock.now() - known.askedAt < limits.statusWatchPeriod / 30;
  if (known.device === undefined || isRemembered) return { result: answer(known.device) };
  // Read again with the account held: a later change of the device then finds the relay.
  const device = await storage.write(`account:${account}`, async (tx) => {
    const device = await readDevice(context, tx, watcher);
    const at = { now: clock.now(), limit: limits.statusWatchers };
    if (device !== undefined) await writeWatcher(tx, watcher, at);
    return device;
  });
  return { result: answer(device) };
};

async function readDevice(
  { clock, identity }: RelayContext,
  tx: Reader,
  { account, deviceId }: Watcher,
): Promise<CurrentDevice | undefined> {
  const now = clock.now();
  requireHome(await homeOf(tx, account, identity.relayId, now));
  return await currentDevice(tx, account, deviceId, now);
}

function answer(device: CurrentDevice | undefined) {
  if (device === undefined) return { status: 'inactive' };
  return { status: 'active', expires_at: device.expiresAt };
}
