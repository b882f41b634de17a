import {
  type AccountSigner,
  accountSigner,
  decodeBase64url,
  type Network,
} from '@posthouse/protocol';
import { ClientError } from '../errors.ts';
import type { Store } from '../store/index.ts';
import { accountKeys, type DeviceKeys } from './account-rows.ts';

/** Decodes a device's stored private keys. */
export function deviceKeyBytes(record: DeviceKeys): {
  readonly signingSeed: Uint8Array;
  readonly encryptionKey: Uint8Array;
} {
  return {
    signingSeed: keyBytes(record.signingSeed),
    encryptionKey: keyBytes(record.encryptionKey),
  };
}

/**
 * Returns the account key to sign with: the key passed in, else the stored one.
 * @throws ClientError `account_key_required`, `invalid_input`; `verification_failed` for a key of another account
 */
export async function requireAccountKey(
  network: Network,
  store: Store,
  wanted: { readonly account: string; readonly given: AccountSigner | Uint8Array | undefined },
): Promise<AccountSigner> {
  const key = wanted.given ?? (await storedAccountKey(store));
  const signer = key instanceof Uint8Array ? signerOf(network, key) : key;
  if (signer === undefined) {
    throw new ClientError(
      'account_key_required',
      'the account key is not stored: pass it as `accountKey`',
    );
  }
  if (signer.account !== wanted.account) {
    throw new ClientError(
      'verification_failed',
      `the key is of another account: pass the key of ${wanted.account}`,
    );
  }
  return signer;
}

/** Makes a signer of an account key. @throws ClientError `invalid_input` */
export function signerOf(network: Network, key: Uint8Array): AccountSigner {
  try {
    return accountSigner(network, key);
  } catch (cause) {
    throw new ClientError('invalid_input', 'account key: give the 32 bytes of a key', { cause });
  }
}

/** Returns the stored account key, 32 bytes, or `undefined`. */
export async function storedAccountKey(store: Store): Promise<Uint8Array | undefined> {
  const kept = await store.read((tx) => accountKeys.get(tx, 'account'));
  return kept === undefined ? undefined : keyBytes(kept);
}

function keyBytes(text: string): Uint8Array {
  const bytes = decodeBase64url(text);
  if (bytes?.length !== 32)
    throw new ClientError(
      'store_mismatch',
      'a stored key is damaged: restore the store, or add this device again',
    );
  return bytes;
}
