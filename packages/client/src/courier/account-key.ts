/** Where the account key comes from: a wallet file, or the folder it is kept in. */
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
  /** Which account of the wallet. */
  readonly address?: string;
}

/** Name of the variable that holds the wallet's password where no person can be asked. */
const passwordVariable = 'COURIER_WALLET_PASSWORD';

/** Private key of a wallet file, 32 bytes. @throws WalletError; UsageError for a bad file */
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

/** The signer of a wallet, where one is named. */
export async function walletSigner(
  network: Network,
  { wallet, address }: WalletOptions,
  environment: CliEnvironment,
): Promise<AccountSigner | undefined> {
  if (wallet === undefined) return undefined;
  return accountSigner(network, await walletKey(network, { wallet, address }, environment));
}

/** Wallets are JSON by their own rules: `null` and fractions are allowed there. */
function parseWalletFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${path}: not JSON`);
  }
}
