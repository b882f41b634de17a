/** Access that has ended and is still open in the tables, because the job has not had its turn. */
import { type DeviceKey, readInactive } from '../../accounts/index.ts';
import type { Reader } from '../../storage/types.ts';
import { readOpenDevices } from './access-store.ts';

/** Inactive devices that a call looks at. The job begins with the same, so others follow soon. */
const looked = 50;

/** A group in which devices have access that must end before anything else happens there. */
export class AccessToEnd extends Error {
  readonly groupId: string;
  readonly devices: readonly DeviceKey[];

  constructor(groupId: string, devices: readonly DeviceKey[]) {
    super('access of inactive devices is still open');
    this.name = 'AccessToEnd';
    this.groupId = groupId;
    this.devices = devices;
  }
}

/**
 * Makes sure that no inactive device has open access to a group: what happens there while a device
 * is not valid must not be in its intervals (05 §10.3).
 *
 * @throws AccessToEnd, which `settled.ts` takes care of
 */
export async function requireEnded(tx: Reader, groupId: string): Promise<void> {
  const noted = await readInactive(tx, { after: undefined, most: looked });
  if (noted.length === 0) return;
  const accounts = [...new Set(noted.map(({ account }) => account))];
  const open = await readOpenDevices(tx, groupId, accounts);
  const devices = noted.filter(({ account, deviceId }) =>
    open.some((device) => device.account === account && device.deviceId === deviceId),
  );
  if (devices.length > 0) throw new AccessToEnd(groupId, devices);
}
