import { checkAccountId, ProtocolError } from '@posthouse/protocol';
import type { RelayHandler } from '../../dispatch/relay-handler.ts';
import { homeOf } from '../home.ts';
import { invalidateRemoteDevice, readRemoteDevice } from '../remote-device-store.ts';
import { remoteDevicesJobName } from '../store-route.ts';

/**
 * `device.status.changed` (07 §C9): what is known of the device permits nothing until its home relay
 * was asked again, which the job does at once. An answer to an earlier question is not used.
 */
export const deviceStatusChanged: RelayHandler<'device.status.changed'> = async (
  context,
  { params, peer },
) => {
  const { clock, identity, jobs, network, storage } = context;
  const { account, device_id: deviceId } = params;
  checkAccountId(network, account, 'account');
  const device = { account, deviceId };
  const { known, home } = await storage.read(async (tx) => ({
    known: await readRemoteDevice(tx, device),
    home: await homeOf(tx, account, identity.relayId, clock.now()),
  }));
  if (home.kind !== 'elsewhere' || home.relayId !== peer.relayId) {
    throw new ProtocolError(
      'forbidden',
      'only the home relay of an account may hint at its devices',
    );
  }
  if (known === undefined) return { result: null };
  await storage.write(`account:${account}`, (tx) =>
    invalidateRemoteDevice(tx, device, clock.now()),
  );
  jobs.wake(remoteDevicesJobName);
  return { result: null };
};
