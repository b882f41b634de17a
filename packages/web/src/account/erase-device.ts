/** Deletes all that the messenger keeps in this browser. */
import { lockedStore, plainStore, visitorStore } from '../state/stores.ts';
import { changeLock } from '../state/tabs.ts';

const prefix = 'posthouse';

/**
 * Deletes stores, files of the app, drafts and settings of this origin, and nothing of other apps there.
 * The client is closed before; other tabs lose their store, and say so.
 *
 * @param blocked as for {@link deleteStore}
 */
export async function eraseDevice(blocked?: () => void): Promise<void> {
  const { locks } = navigator;
  // Tabs that are opened meanwhile wait until all is deleted, and this waits until another tab has locked or unlocked.
  await (locks === undefined
    ? eraseAlone(blocked)
    : locks.request(changeLock, () => eraseAlone(blocked)));
}

async function eraseAlone(blocked: (() => void) | undefined): Promise<void> {
  // First: a person who closes the page while a store is deleted leaves no draft. A store is deleted in any case.
  clearStorage();
  clearShown().catch(() => undefined);
  await Promise.all(
    [plainStore, lockedStore, visitorStore].map((name) => deleteStore(name, blocked)),
  );
  // What this page, or another tab that ended with its store, kept meanwhile.
  clearStorage();
  for (const name of await caches.keys()) {
    if (name.startsWith(`${prefix}-`)) await caches.delete(name);
  }
  const registration = await navigator.serviceWorker?.getRegistration();
  await registration?.unregister();
}

/** Takes back what the system shows of the app: a number, and names of people in notifications. */
export async function clearShown(): Promise<void> {
  navigator.setAppBadge?.(0).catch(() => undefined);
  const registration = await navigator.serviceWorker?.getRegistration();
  for (const shown of (await registration?.getNotifications()) ?? []) shown.close();
}

function clearStorage(): void {
  for (const storage of [localStorage, sessionStorage]) {
    for (const key of Object.keys(storage))
      if (key.startsWith(`${prefix}.`)) storage.removeItem(key);
  }
}

/**
 * Deletes what a locked device has in plain: after the lock, and after the first opening of a lock that was interrupted.
 *
 * @param blocked as for {@link deleteStore}
 */
export async function forgetPlain(blocked?: () => void): Promise<void> {
  for (const key of Object.keys(localStorage)) {
    if (/^posthouse\.(?:device-names$|draft\.|key-passkeys$|posting\.|rooms\.|sending\.)/.test(key))
      localStorage.removeItem(key);
  }
  await deleteStore(plainStore, blocked);
}

/**
 * @param blocked is called if another page has it open and does not close it: it is deleted when that page ends
 * @throws Error if the browser cannot delete it
 */
export function deleteStore(name: string, blocked?: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error);
    request.onblocked = () => blocked?.();
  });
}
