import { checkAccountId } from '@posthouse/protocol';
import type { RelayHandler } from '../../dispatch/relay-handler.ts';
import { currentDevice } from '../devices.ts';
import { homeOf, locate } from '../home.ts';
import { requireHome } from '../rules.ts';

/**
 * `device.status` of an account at home here (07 §C5): answered from its authoritative state only.
 * An inactive device gets no reason.
 */
export const deviceStatus: RelayHandler<'device.status'> = async (context, { params, peer }) => {
  const { clock, identity, network, storage } = context;
  const { account, device_id: deviceId } = params;
  checkAccountId(network, account, 'account');
  const now = clock.now();
  requireHome(await locate(context, account, { now, asker: `relay ${peer.relayId}` }));
  const device = await storage.read(async (tx) => {
    requireHome(await homeOf(tx, account, identity.relayId, now));
    return await currentDevice(tx, account, deviceId, now);
  });
  if (device === undefined) return { result: { status: 'inactive' } };
  return { result: { status: 'active', expires_at: device.expiresAt } };
};
