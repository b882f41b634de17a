/**
 * Writes an account key to a NEP-6 wallet file (chapter 01, appendix C), which other programs open
 * with the password, too.
 */
import { base64 } from '@scure/base';
import { encodeBase64url } from '../encoding/base64url.ts';
import { accountScript, deriveAccountId } from './account-id.ts';
import type { Network } from './network.ts';
import { encryptNep2, type Nep6Wallet } from './wallet.ts';

/** What other wallets use, too: 16 MiB, and about a second. */
const usualCost = { n: 16_384, r: 8, p: 8 } as const;

/** A wallet file with one account, as {@link sealNep6Wallet} makes it; write it as JSON. */
export interface SealedWallet extends Nep6Wallet {
  readonly name: string;
  readonly version: '1.0';
  readonly extra: null;
}

/**
 * Encrypts an account key with a password, as a NEP-6 wallet of one account. Each run for a key and
 * a password gives the same text: the format has no salt but the address. Anyone who has the file may
 * try passwords, so it protects as far as the password does. Gives way to other work every few
 * milliseconds.
 *
 * @param privateKey 32 bytes
 * @returns the content of the file
 * @throws TypeError for an empty password, or bytes that are no private key
 * @example
 * const wallet = await sealNep6Wallet(network, key, { password: 'four words by chance' });
 * const text = JSON.stringify(wallet);
 */
export async function sealNep6Wallet(
  network: Network,
  privateKey: Uint8Array,
  { password, name = 'account' }: { readonly password: string; readonly name?: string },
): Promise<SealedWallet> {
  if (password === '') throw new TypeError('the password is empty: choose one');
  const publicKey = network.primitives.p256.publicKey(privateKey);
  const [, , address = ''] = deriveAccountId(network, encodeBase64url(publicKey)).split(':');
  const key = await encryptNep2(network.primitives, privateKey, {
    ...{ password, address, cost: usualCost },
  });
  const contract = {
    script: base64.encode(accountScript(publicKey)),
    parameters: [{ name: 'signature', type: 'Signature' }],
    deployed: false,
  };
  const account = {
    address,
    label: null,
    isDefault: true,
    lock: false,
    key,
    contract,
    extra: null,
  };
  return { name, version: '1.0', scrypt: usualCost, accounts: [account], extra: null };
}
