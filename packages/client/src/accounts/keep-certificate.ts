/** Renewing this device's certificate before it ends, or warning of its end (01 §8, 03 §11.2). */
import { devicesOf } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { isClientError } from '../errors.ts';
import { recordEvents } from '../events/event-log.ts';
import type { AccountEvent } from '../events.ts';
import { Collection } from '../store/collection.ts';
import type { StoreWriter } from '../store/index.ts';
import { ownKey } from './account-rows.ts';
import { knownState } from './device-states.ts';
import { renewThisDevice } from './devices.ts';
import { storedAccountKey } from './stored-keys.ts';

/** Seconds. */
const day = 86_400;
/** Days before the end at which a warning is due, the next one first. */
const warningDays = [1, 7, 30] as const;
/** Seconds before the end from which on the certificate is renewed. */
const renewalLead = 30 * day;

/** What was done about the end of the certificate: key `own`. */
interface CertificateCare {
  /** Unix seconds of the last try to renew it. */
  readonly triedAt?: number;
  /** The last warning, and Unix seconds of the end it was about. */
  readonly warned?: { readonly expiresAt: number; readonly days: number };
}
const careRows = new Collection<CertificateCare>('certificate-care');

/**
 * Renews this device's certificate in its last 30 days if the account key is stored, after a
 * failure again a day later. Otherwise returns the event `device-expires` 30, 7 and 1 days before
 * the end, each once. A device that was removed is not added again.
 */
export async function keepCertificate(
  core: AccountCore,
  signal: AbortSignal,
): Promise<AccountEvent[]> {
  const { account, accountKey, clock, device, network, store } = core;
  const now = unixSeconds(clock);
  const state = await store.read((tx) => knownState(tx, account));
  const expiresAt = state && devicesOf(network, state).get(device.deviceId)?.expires_at;
  if (expiresAt === undefined || expiresAt - now > renewalLead) return [];
  if ((await storedAccountKey(store)) !== undefined) {
    if (!(await store.write((tx) => beginRenewal(tx, now)))) return [];
    try {
      const signer = await accountKey(undefined);
      await renewThisDevice(core, { signer, signal, onlyIfListed: true });
      return [];
    } catch (error) {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
    }
  }
  return await store.write((tx) => warn(tx, { expiresAt, now }));
}

/** @returns whether a renewal is due; it is tried from now on */
async function beginRenewal(tx: StoreWriter, now: number): Promise<boolean> {
  const care = await careRows.get(tx, ownKey);
  const triedAt = care?.triedAt;
  if (triedAt !== undefined && triedAt <= now && now - triedAt < day) return false;
  await careRows.put(tx, ownKey, { ...care, triedAt: now });
  return true;
}

async function warn(
  tx: StoreWriter,
  { expiresAt, now }: { readonly expiresAt: number; readonly now: number },
): Promise<AccountEvent[]> {
  const days = warningDays.find((each) => expiresAt - now <= each * day);
  const care = await careRows.get(tx, ownKey);
  const last = care?.warned?.expiresAt === expiresAt ? care.warned.days : Number.POSITIVE_INFINITY;
  if (days === undefined || days >= last) return [];
  await careRows.put(tx, ownKey, { ...care, warned: { expiresAt, days } });
  const event = { kind: 'device-expires', expiresAt, days } as const;
  await recordEvents(tx, [event]);
  return [event];
}
