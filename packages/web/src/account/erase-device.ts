/** Deletes all that the messenger keeps in this browser. */
import { lockedStore, plainStore, visitorStore } from '../state/stores.ts';

const prefix = 'posthouse';

/**
 * Deletes stores, files of the app, drafts and settings of this origin, and nothing of other apps there.
 * The client is closed before; other tabs lose their store, and say so.
 */
export async function eraseDevice(): Promise<void> {
  await Promise.all([plainStore, lockedStore, visitorStore].map(deleteStore));
  for (const storage of [localStorage, sessionStorage]) {
    for (const key of Object.keys(storage))
      if (key.startsWith(`${prefix}.`)) storage.removeItem(key);
  }
  for (const name of await caches.keys()) {
    if (name.startsWith(`${prefix}-`)) await caches.delete(name);
  }
  const registration = await navigator.serviceWorker?.getRegistration();
  await registration?.unregister();
}

/** @throws Error if the browser cannot delete it */
export function deleteStore(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error);
  });
}
