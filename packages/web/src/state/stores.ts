/** Names of the stores of this origin: the usual one, and the one that is encrypted while the device is locked. */
export const plainStore = 'posthouse';
export const lockedStore = 'posthouse-locked';
/** That of the visitor who reads channels without an account. */
export const visitorStore = 'posthouse-visitor';

/**
 * The row of the encrypted store, readable without its key, that has what opens it with a password or passkey: no secret.
 * It is written when that store is complete, and deleted when the usual one is complete again. So a crash at any
 * moment leaves one answer to which store is used, on the same disk and as durable as they are.
 */
export const lockRow = { collection: 'encryption', key: 'lock' } as const;

let lock: string | undefined;
/** Whether there is an encrypted store that is not in use: a crash came before it was complete, or before its end. */
let hasUnused = false;

/** What opens the encrypted store; `undefined` if the device is not locked. */
export const lockText = () => lock;

/** Whether the store is encrypted, and has to be opened by the person. */
export const isLocked = () => lock !== undefined;

/** Deletes an encrypted store that is not in use. Only after an account was found in the usual one. */
export function deleteUnused(): void {
  if (hasUnused) indexedDB.deleteDatabase(lockedStore);
  hasUnused = false;
}

/** Reads whether the device is locked, and with what. It creates no store. */
export async function readLock(): Promise<void> {
  const opening = indexedDB.open(lockedStore);
  const database = await new Promise<IDBDatabase | undefined>((resolve, reject) => {
    // There is none: it is not made.
    opening.onupgradeneeded = () => opening.transaction?.abort();
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () =>
      opening.error?.name === 'AbortError' ? resolve(undefined) : reject(opening.error);
  });
  lock = undefined;
  hasUnused = false;
  if (database === undefined) return;
  try {
    const { collection, key } = lockRow;
    const rows = database.transaction('entries').objectStore('entries');
    const request: IDBRequest<string | undefined> = rows.get(`${collection}\0${key}`);
    await new Promise<void>((resolve, reject) => {
      request.onsuccess = () => resolve();
      request.onerror = () => reject(request.error);
    });
    lock = request.result;
    hasUnused = lock === undefined;
  } finally {
    database.close();
  }
}
