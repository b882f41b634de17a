/** Where the lock of this device is kept, and what is said of passkeys. */
import { isClientError } from '@posthouse/client/web';
import { lockMark, tabLock } from '../state/stores.ts';
import { faultText, Said } from './faults.ts';
import type { Lock } from './lock-store.ts';
import { l } from './lock-text.ts';

/** @returns `undefined` if the device is not locked, or what opens it is damaged */
export function keptLock(): Lock | undefined {
  try {
    const found: Lock | null = JSON.parse(localStorage.getItem(lockMark) ?? 'null');
    return Array.isArray(found?.passkeys) ? found : undefined;
  } catch {
    return undefined;
  }
}

export function keepLock(lock: Lock | undefined): void {
  if (lock === undefined) localStorage.removeItem(lockMark);
  else localStorage.setItem(lockMark, JSON.stringify(lock));
}

/** What is wrong with a password or passkey. */
export function lockFault(error: unknown): string {
  const { fault } = error as { readonly fault?: string };
  if (fault !== undefined) return fault === 'password' ? l.wrong : l.damaged;
  return (isClientError(error) && l.passkey[error.code]) || faultText(error);
}

/** @throws Error if another tab of the app is open, which would go on with the other store */
export async function requireOnlyTab(): Promise<void> {
  const { held = [] } = await navigator.locks.query();
  if (held.filter(({ name }) => name === tabLock).length > 1) throw new Said(l.otherTabs);
}
