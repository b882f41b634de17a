/** Backups: an account's key in a wallet file (NEP-6), which a password opens (chapter 01, appendix C). */
import {
  createPasskey,
  openWithPasskey,
  type PasskeyDocument,
} from '@posthouse/client/web/passkey';
import {
  accountSigner,
  checkWalletKey,
  Network,
  openNep6Wallet,
  sealNep6Wallet,
  WalletError,
} from '@posthouse/protocol';
import { webPrimitives } from '@posthouse/protocol/web';
import type { AppConfig } from '../app-config.ts';
import type { SavedFile } from './save-file.ts';

/** The network of the configuration, with what a browser computes. */
export function networkOf({ context, word }: AppConfig): Network {
  return new Network({ context, primitives: webPrimitives, ...(word !== undefined && { word }) });
}

/**
 * Encrypts a key with a password; takes about a second, in short turns. Passkeys that open it, too, are in the file, in
 * a member that other wallets pass over.
 *
 * @param options.passkeys those that there are
 * @param options.newPasskey name of one that is made, after a click
 * @throws ClientError `passkey_...`
 */
export async function sealBackup(
  config: AppConfig,
  key: Uint8Array,
  {
    password,
    passkeys,
    newPasskey,
  }: {
    readonly password: string;
    readonly passkeys: readonly PasskeyDocument[];
    readonly newPasskey?: string | undefined;
  },
): Promise<{ readonly file: SavedFile; readonly passkeys: readonly PasskeyDocument[] }> {
  const network = networkOf(config);
  const wallet = await sealNep6Wallet(network, key, { password, name: config.name });
  const made =
    newPasskey === undefined
      ? []
      : [
          await createPasskey(network, key, {
            name: newPasskey,
            fallback: wallet,
            others: passkeys,
          }),
        ];
  const all = [...passkeys, ...made];
  const content = { ...wallet, extra: all.length === 0 ? null : { posthouse_passkeys: all } };
  const day = new Date().toISOString().slice(0, 10);
  const file = {
    name: `account-backup-${day}.json`,
    content: new Blob([JSON.stringify(content, undefined, 2)], { type: 'application/json' }),
  };
  return { file, passkeys: all };
}

/** Makes a passkey for a key whose backup was opened, after a click. @throws ClientError `passkey_...` */
export async function passkeyForBackup(
  config: AppConfig,
  key: Uint8Array,
  { file, name, others }: { file: Blob; name: string; others: readonly PasskeyDocument[] },
): Promise<PasskeyDocument> {
  const fallback = JSON.parse(await file.text());
  return await createPasskey(networkOf(config), key, { name, fallback, others });
}

/** Returns whether a file is a whole backup of a key: what its passkeys open, a password opens as well. */
export async function isBackupOf(config: AppConfig, file: Blob, key: Uint8Array): Promise<boolean> {
  const network = networkOf(config);
  const [, , address = ''] = accountSigner(network, key).account.split(':');
  try {
    checkWalletKey(network, JSON.parse(await file.text()), address);
    return true;
  } catch {
    return false;
  }
}

/** Opens the account key with a passkey, after a click. @throws ClientError `passkey_...` */
export async function openKeyByPasskey(
  config: AppConfig,
  passkeys: readonly PasskeyDocument[],
): Promise<Uint8Array> {
  return (await openWithPasskey(networkOf(config), passkeys)).key;
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
