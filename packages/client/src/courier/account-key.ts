/** The account key from and to a wallet file. */
import {
  type AccountSigner,
  accountSigner,
  decodeBase64url,
  type Network,
  openNep6Wallet,
  sealNep6Wallet,
} from '@posthouse/protocol';
import type { Command } from 'commander';
import type { CliEnvironment } from './client-session.ts';
import { UsageError } from './exit.ts';
import { writeNew } from './new-file.ts';
import { readText } from './settings.ts';

export interface KeyOptions {
  /** File with an account key, as `courier key export` writes it. */
  readonly keyFile?: string;
  /** NEP-6 wallet file. */
  readonly wallet?: string;
  /** Address of the account in the wallet. */
  readonly address?: string;
}

/** Variable with the wallet's password, for runs without a terminal. */
const passwordVariable = 'COURIER_WALLET_PASSWORD';

/** Decrypts a wallet file's private key, 32 bytes. @throws WalletError, UsageError */
async function walletKey(
  network: Network,
  { wallet, address }: { readonly wallet: string; readonly address?: string | undefined },
  environment: CliEnvironment,
): Promise<Uint8Array> {
  const content = parseWalletFile(wallet, readText(wallet));
  const password =
    environment.env[passwordVariable] ?? (await environment.askSecret('Wallet password: '));
  const options = { password, ...(address !== undefined && { address }) };
  return (await openNep6Wallet(network, content, options)).privateKey;
}

/** Adds the options that give an account key. */
export function withKey(command: Command): Command {
  return command
    .option('--wallet <file>', 'NEP-6 wallet with the account key')
    .option('--address <address>', 'which account of the wallet')
    .option('--key-file <file>', 'file with an account key from `courier key export`');
}

/**
 * Reads the account key that is given, 32 bytes; `undefined` if none is.
 * @throws WalletError, UsageError
 */
export async function givenKey(
  network: Network,
  { wallet, address, keyFile }: KeyOptions,
  environment: CliEnvironment,
): Promise<Uint8Array | undefined> {
  if (wallet !== undefined && keyFile !== undefined) {
    throw new UsageError('give either --wallet or --key-file, not both');
  }
  if (wallet !== undefined) return await walletKey(network, { wallet, address }, environment);
  if (keyFile === undefined) return undefined;
  const key = decodeBase64url(readText(keyFile).trim());
  if (key?.length !== 32) {
    throw new UsageError(`${keyFile}: not an account key: make the file with courier key export`);
  }
  return key;
}

/** Returns the signer of the given account key; `undefined` if none is given. */
export async function givenSigner(
  network: Network,
  options: KeyOptions,
  environment: CliEnvironment,
): Promise<AccountSigner | undefined> {
  const key = await givenKey(network, options, environment);
  return key && accountSigner(network, key);
}

/** Parses with `JSON.parse`: wallets may contain `null` and fractions, unlike protocol JSON. */
function parseWalletFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${path}: not JSON: give a NEP-6 wallet file`);
  }
}

/**
 * Writes an account key to a new wallet file that only its owner may read.
 *
 * @param from.key 32 bytes, base64url
 * @returns the account's address in the wallet
 * @throws UsageError if the file exists, or the password is empty or not repeated
 */
export async function writeWallet(
  path: string,
  from: { readonly key: string; readonly network: Network; readonly environment: CliEnvironment },
): Promise<string> {
  const { network, environment } = from;
  const key = decodeBase64url(from.key);
  if (key === undefined) throw new UsageError('the stored account key is damaged: use a backup');
  const password = await newPassword(environment);
  const wallet = await sealNep6Wallet(network, key, { password });
  await writeNew(path, `${JSON.stringify(wallet, undefined, 2)}\n`, '--wallet');
  return wallet.accounts[0]?.address ?? '';
}

/** Asks twice: a password that was mistyped would lock the key up. */
async function newPassword({ env, askSecret }: CliEnvironment): Promise<string> {
  const given = env[passwordVariable];
  const password = given ?? (await askSecret('New wallet password: '));
  if (password === '') throw new UsageError('the password is empty: choose one');
  if (given === undefined && (await askSecret('Again: ')) !== password) {
    throw new UsageError('the passwords differ: run the command again');
  }
  return password;
}
