/** People at home on the relay, whatever they meet in. */
import type { Resident, ResidentOptions, Stage } from './stage.ts';

/** So many people at home on the relay. */
export function residents(
  stage: Stage,
  count: number,
  options: ResidentOptions = {},
): Promise<Resident[]> {
  return Promise.all(Array.from({ length: count }, () => stage.resident(options)));
}

/** Publishes the devices that somebody has from now on. */
export async function keepDevices(
  stage: Stage,
  { account, caller }: Resident,
  devices: Resident['devices'],
): Promise<void> {
  await stage.succeed(caller, 'device.state.publish', await account.state(devices));
}

/** Somebody at another of their devices. */
export function at(person: Resident, index: number): Resident {
  const { devices, callers } = person;
  const device = devices[index] as Resident['device'];
  return { ...person, device, caller: callers[index] as Resident['caller'] };
}
