/** What commands use of backups. */
export { backUp } from './back-up.ts';
export { onDiskOf, partialFolder } from './files.ts';
export { BackupError } from './manifest.ts';
export { type RestoreOptions, restore } from './restore.ts';
export { markPutBack } from './restored.ts';
export { verifyBackup } from './verify.ts';
