/** Parts of the app that are built apart, so that what they need is not loaded at the start. */
declare const CRYPTOGRAPHY_FILE: string;

/** Loads what seals and opens keys and requests. Rejects offline, if it was never loaded. */
export async function loadCryptography(): Promise<typeof import('../account/cryptography.ts')> {
  return await import(CRYPTOGRAPHY_FILE);
}

/** Loads groups and channels. Rejects offline, if they were never loaded. */
export async function loadRooms(): Promise<typeof import('../rooms.ts')> {
  return await import('../rooms.ts');
}
