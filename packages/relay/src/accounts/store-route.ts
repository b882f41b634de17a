/** Storing a route with its effects on the account's devices, in one transaction (07 §B12). */
import type { RelayContext } from '../context.ts';
import type { Writer } from '../storage/types.ts';
import {
  deleteRemoteDevices,
  invalidateRemoteDevices,
  writeRemoteDevice,
} from './remote-device-store.ts';
import {
  type Announcement,
  deleteDevices,
  type KnownRoute,
  readDevices,
  writeRoute,
} from './store.ts';
import { addHints } from './watcher-store.ts';

/** Name of the job that confirms routes that name this relay; woken when one must be sent again. */
export const ownRoutesJobName = 'accounts.own-routes';
/** Name of the job that asks other relays for their devices; woken when one must be asked. */
export const remoteDevicesJobName = 'accounts.remote-devices';
/** Name of the job that sends `device.status.changed`; woken when a device changes. */
export const statusHintsJobName = 'accounts.status-hints';

/**
 * Stores a route in place of the known one. If the account leaves this relay, its devices become
 * devices of its new home relay, which must be asked for them; if its home changes between other
 * relays, or conflicts, what is known of its devices is useless; if it comes home, its state here
 * describes them again.
 *
 * @param change.announce the relay that the account leaves, and when it is sent the route again
 * @param change.isConfirmed false if the network must be asked soon whether another relay has a
 *   route of the account
 */
export async function storeRoute(
  tx: Writer,
  account: string,
  next: KnownRoute,
  change: {
    readonly known: KnownRoute | undefined;
    /** This relay. */
    readonly relayId: string;
    readonly now: number;
    readonly announce?: Announcement | undefined;
    readonly isConfirmed?: boolean;
    /** When it is sent to other relays again; by default at once, if it names this relay. */
    readonly publishAt?: number;
  },
): Promise<void> {
  const { known, relayId, now, announce, isConfirmed = true } = change;
  const from = known?.relayId;
  const to = next.relayId;
  const publishAt = to === relayId && !next.conflict ? (change.publishAt ?? now) : undefined;
  const checkedAt = isConfirmed ? now : 0;
  await writeRoute(tx, account, next, { checkedAt, announce, publishAt });
  if (to === relayId) {
    if (from !== relayId) await deleteRemoteDevices(tx, account);
    return;
  }
  if (from === relayId) await leave(tx, account, { to, now });
  else if (from !== to || next.conflict) {
    await invalidateRemoteDevices(tx, account, { relayId: to, now });
  }
}

/** Wakes the jobs to which a route that was found elsewhere may have given work. */
export function wakeRouteJobs({ jobs }: RelayContext): void {
  jobs.wake(remoteDevicesJobName);
  jobs.wake(statusHintsJobName);
}

async function leave(
  tx: Writer,
  account: string,
  { to, now }: { readonly to: string; readonly now: number },
): Promise<void> {
  // All devices, also expired ones: the new home relay may know later certificates.
  for (const device of await readDevices(tx, account)) {
    const { deviceId, certificateId, certificate, expiresAt } = device;
    const remote = { account, deviceId, relayId: to, certificateId, certificate, expiresAt };
    const status = { status: 'active', isStale: true, confirmedAt: now } as const;
    await writeRemoteDevice(tx, { ...remote, ...status, generation: 0, failures: 0 }, now);
  }
  await deleteDevices(tx, account);
  // Relays that ask this one then learn where the account is.
  await addHints(tx, account, { now });
}
