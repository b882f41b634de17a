/** What commands use of backups. */
export { backUp } from './back-up.ts';
export { restore } from './restore.ts';
export { markPutBack } from './restored.ts';
export { verifyBackup } from './verify.ts';
