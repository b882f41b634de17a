/** The account key from a wallet file. */
import {
  type AccountSigner,
  accountSigner,
  type Network,
  openNep6Wallet,
} from '@posthouse/protocol';
import type { CliEnvironment } from './client-session.ts';
import { UsageError } from './exit.ts';
import { readText } from './settings.ts';

export interface WalletOptions {
  /** NEP-6 wallet file. */
  readonly wallet?: string;
  /** Address of the account in the wallet. */
  readonly address?: string;
}

/** Variable with the wallet's password, for runs without a terminal. */
const passwordVariable = 'COURIER_WALLET_PASSWORD';

/** Decrypts a wallet file's private key, 32 bytes. @throws WalletError, UsageError */
export async function walletKey(
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

/** Returns the signer of the wallet; `undefined` if no wallet is given. */
export async function walletSigner(
  network: Network,
  { wallet, address }: WalletOptions,
  environment: CliEnvironment,
): Promise<AccountSigner | undefined> {
  if (wallet === undefined) return undefined;
  return accountSigner(network, await walletKey(network, { wallet, address }, environment));
}

/** Parses with `JSON.parse`: wallets may contain `null` and fractions, unlike protocol JSON. */
function parseWalletFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${path}: not JSON: give a NEP-6 wallet file`);
  }
}
