/** Backups: an account's key in a wallet file (NEP-6), which a password opens (chapter 01, appendix C). */
import { Network, openNep6Wallet, sealNep6Wallet, WalletError } from '@posthouse/protocol';
import { webPrimitives } from '@posthouse/protocol/web';
import type { AppConfig } from '../app-config.ts';
import type { SavedFile } from './save-file.ts';

/** The network of the configuration, with what a browser computes. */
export function networkOf({ context, word }: AppConfig): Network {
  return new Network({ context, primitives: webPrimitives, ...(word !== undefined && { word }) });
}

/** Encrypts a key with a password; takes about a second, in short turns. */
export async function sealBackup(
  config: AppConfig,
  key: Uint8Array,
  password: string,
): Promise<SavedFile> {
  const wallet = await sealNep6Wallet(networkOf(config), key, { password, name: config.name });
  const day = new Date().toISOString().slice(0, 10);
  return {
    name: `account-backup-${day}.json`,
    content: new Blob([JSON.stringify(wallet, undefined, 2)], { type: 'application/json' }),
  };
}

/**
 * Opens a backup.
 *
 * @throws WalletError `format` for a file that is none, `password` for a wrong password
 */
export async function openBackup(
  config: AppConfig,
  file: Blob,
  password: string,
): Promise<Uint8Array> {
  let content: unknown;
  try {
    content = JSON.parse(await file.text());
  } catch (cause) {
    throw new WalletError('format', 'not JSON', { cause });
  }
  return (await openNep6Wallet(networkOf(config), content, { password })).privateKey;
}
