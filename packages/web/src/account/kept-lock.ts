/** The lock of this device as the page read it, what is said of passkeys, and what one tab alone may do. */
import { lockText, readLock } from '../state/stores.ts';
import { changeLock, tabLock } from '../state/tabs.ts';
import { faultText, Said } from './faults.ts';
import { passkeyFault } from './key-passkeys.ts';
import type { Lock } from './lock-store.ts';
import { l } from './lock-text.ts';

/** @returns `undefined` if the device is not locked, or what opens it is damaged */
export function keptLock(): Lock | undefined {
  try {
    const found: Lock | null = JSON.parse(lockText() ?? 'null');
    return Array.isArray(found?.passkeys) ? found : undefined;
  } catch {
    return undefined;
  }
}

/** What is wrong with a password or passkey. */
export function lockFault(error: unknown): string {
  const { fault } = error as { readonly fault?: string };
  if (fault !== undefined) return fault === 'password' ? l.wrong : l.damaged;
  return passkeyFault(error) ?? faultText(error);
}

/**
 * Does something with the lock that the page shows. If another tab erased or changed what it opens, the page begins anew
 * instead: a store that is opened now would be a new one, which is not in use.
 */
export async function ifLockStays(work: () => Promise<void>): Promise<void> {
  const begin = async () => {
    const shown = lockText();
    await readLock();
    if (lockText() === shown) await work();
    else location.reload();
  };
  const { locks } = navigator;
  await (locks === undefined ? begin() : locks.request(changeLock, { mode: 'shared' }, begin));
}

/**
 * Does what only one tab may do, because it changes which store is used. Tabs that are opened meanwhile wait for its
 * end before they read that.
 *
 * @throws Error if another tab of the app is open
 */
export async function alone<Result>(work: () => Promise<Result>): Promise<Result> {
  const { locks } = navigator;
  return await locks.request(changeLock, { ifAvailable: true }, async (mine) => {
    const { held = [] } = await locks.query();
    const tabs = held.filter(({ name }) => name?.startsWith(tabLock));
    if (mine === null || tabs.length > 1) throw new Said(l.otherTabs);
    return await work();
  });
}
