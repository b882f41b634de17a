/** Parts of the app that are built apart, so that what they need is not loaded at the start. */
declare const BACKUP_FILE: string;

/** Loads what seals and opens backups. Rejects offline, if it was never loaded. */
export async function loadBackup(): Promise<typeof import('../state/backup.ts')> {
  return await import(BACKUP_FILE);
}
