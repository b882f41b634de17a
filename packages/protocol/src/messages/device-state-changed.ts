/** The hint that a cached device list is out of date (04 §7.4). */
import type { Network } from '../identity/index.ts';
import { Counter, checkNoNull, checkObject, type Static, Type, TypeName } from '../schema.ts';

/** Revision of the state the sender's home relay accepted. Proves nothing about devices. */
export const DeviceStateChanged = Type.Object({ $type: TypeName, revision: Counter });
export type DeviceStateChanged = Static<typeof DeviceStateChanged>;

/**
 * Checks a hint that a device list changed (04 §7.4).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkDeviceStateChanged(network, value);
 * console.log(value.revision);
 */
export function checkDeviceStateChanged(
  network: Network,
  value: unknown,
  path = '',
): asserts value is DeviceStateChanged {
  checkObject(network, { type: 'device.state.changed', schema: DeviceStateChanged }, value, path);
  checkNoNull(value, path);
}
