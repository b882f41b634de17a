/**
 * A locked device: its store is encrypted with a key by chance (decision 0037), which a password opens,
 * and a passkey where there is one (decision 0043). Part of what is bundled apart.
 */
import { webRandom } from '@posthouse/client';
import { encryptedStore } from '@posthouse/client/encrypted-store';
import { IndexedDbStore } from '@posthouse/client/web';
import {
  createPasskey,
  openWithPasskey,
  type PasskeyDocument,
} from '@posthouse/client/web/passkey';
import {
  accountSigner,
  type Nep6Wallet,
  openNep6Wallet,
  sealNep6Wallet,
} from '@posthouse/protocol';
import { webPrimitives } from '@posthouse/protocol/web';
import type { AppConfig } from '../app-config.ts';
import { networkOf } from '../state/backup.ts';
import { lockedStore, lockRow, plainStore } from '../state/stores.ts';
import { deleteStore } from './erase-device.ts';

/** What is kept of a lock. No part of it is a secret. */
export interface Lock {
  readonly wallet: Nep6Wallet;
  readonly passkeys: readonly PasskeyDocument[];
}

const purpose = 'store-key';

/** Rows that are copied at once. */
const batch = 200;

/** Makes a key for a store, and seals it with a password. */
export async function makeLock(
  config: AppConfig,
  password: string,
): Promise<{ readonly lock: Lock; readonly key: Uint8Array }> {
  const network = networkOf(config);
  const key = randomKey(config);
  const wallet = await sealNep6Wallet(network, key, { password, name: 'lock' });
  return { lock: { wallet, passkeys: [] }, key };
}

/** @throws WalletError `format`, `password` */
export async function openLock(
  config: AppConfig,
  { wallet }: Lock,
  password: string,
): Promise<Uint8Array> {
  return (await openNep6Wallet(networkOf(config), wallet, { password })).privateKey;
}

/** Adds a passkey, after a click. @throws ClientError `passkey_...` */
export async function addPasskey(
  config: AppConfig,
  lock: Lock,
  { key, name }: { readonly key: Uint8Array; readonly name: string },
): Promise<Lock> {
  const { wallet: fallback, passkeys } = lock;
  const others = [...passkeys];
  const made = await createPasskey(networkOf(config), key, { name, fallback, purpose, others });
  return { ...lock, passkeys: [...passkeys, made] };
}

/** Opens the key with a passkey, after a click. @throws ClientError `passkey_...` */
export async function openByPasskey(config: AppConfig, { passkeys }: Lock): Promise<Uint8Array> {
  return (await openWithPasskey(networkOf(config), [...passkeys], { purpose })).key;
}

/** What a change of the store is told. */
interface CopyOptions {
  readonly key: Uint8Array;
  /** Called if another page keeps a store open that has to be deleted. */
  readonly blocked: () => void;
}

/**
 * Copies the usual store into an encrypted one, which is the one in use from its last write on. No client may be
 * open, and no other tab. The usual store stays: after this it can be deleted.
 */
export async function encryptStore(lock: Lock, options: CopyOptions): Promise<void> {
  await copyStore([plainStore, lockedStore], options);
  await keepLock(lock);
}

/**
 * Copies the encrypted store into a usual one, which is the one in use from then on. No client may be open, and no
 * other tab. The encrypted store stays: after this it can be deleted.
 */
export async function decryptStore(options: CopyOptions): Promise<void> {
  await copyStore([lockedStore, plainStore], options);
  await using store = await IndexedDbStore.open(lockedStore);
  await store.write(async (tx) => {
    await tx.delete(lockRow.collection, lockRow.key);
    // So that it is no store of a lock of an earlier version.
    await tx.delete(...probe);
  });
}

/** Keeps what opens the encrypted store, and by that says that this is the store in use. */
export async function keepLock(lock: Lock): Promise<void> {
  await putLock(JSON.stringify(lock));
}

async function putLock(text: string): Promise<void> {
  await using store = await IndexedDbStore.open(lockedStore);
  await store.write((tx) => tx.put(lockRow.collection, lockRow.key, text));
}

/** The row of the SDK that shows whether a key is the store's (decision 0037). */
const probe = [lockRow.collection, 'probe'] as const;

/**
 * Takes over a lock of an earlier version, which was kept in `localStorage`: a crash could lose its changes. It counts
 * if there is a store that it opens.
 */
export async function adoptLock(text: string): Promise<void> {
  const databases = await indexedDB.databases();
  if (!databases.some(({ name }) => name === lockedStore)) return;
  const isOpenedByIt = async () => {
    await using store = await IndexedDbStore.open(lockedStore);
    return await store.read(
      async (tx) =>
        (await tx.get(...probe)) !== undefined &&
        (await tx.get(lockRow.collection, lockRow.key)) === undefined,
    );
  };
  if (await isOpenedByIt()) await putLock(text);
}

/** Copies all rows of a store into another one, which is made anew, and removed if it fails. */
async function copyStore(
  [from, to]: readonly [from: string, to: string],
  { key, blocked }: CopyOptions,
): Promise<void> {
  // What an attempt that was interrupted left there.
  await deleteStore(to, blocked);
  try {
    await copyRows([from, to], key);
  } catch (error) {
    // It takes the space that may be missing. Left there, it would be deleted by the next attempt.
    await deleteStore(to, blocked).catch(() => undefined);
    throw error;
  }
}

async function copyRows([from, to]: readonly [string, string], key: Uint8Array): Promise<void> {
  const opened = async (name: string) => {
    const store = await IndexedDbStore.open(name);
    return name === plainStore
      ? store
      : await encryptedStore(store, { key, primitives: webPrimitives });
  };
  await using source = await opened(from);
  await using target = await opened(to);
  const rows = await rowsOf(from);
  for (let at = 0; at < rows.length; at += batch) {
    const some = rows.slice(at, at + batch);
    const texts = await source.read((tx) =>
      Promise.all(some.map(([collection, row]) => tx.get(collection, row))),
    );
    await target.write(async (tx) => {
      for (const [index, [collection, row]] of some.entries()) {
        const text = texts[index];
        if (text !== undefined) await tx.put(collection, row, text);
      }
    });
  }
}

/**
 * Names of all rows: collection and key. A store does not list its collections, so this reads the keys
 * of its one table, `<collection> NUL <key>`.
 */
async function rowsOf(name: string): Promise<readonly (readonly [string, string])[]> {
  const settled = <T>(request: IDBRequest<T>) =>
    new Promise<T>((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const database = await settled(indexedDB.open(name));
  try {
    const keys = await settled(database.transaction('entries').objectStore('entries').getAllKeys());
    return keys.flatMap((key) => {
      const [collection = '', ...rest] = String(key).split('\0');
      // The row that shows whether a key is the store's, and that of the lock, are each store's own.
      return collection === lockRow.collection ? [] : [[collection, rest.join('\0')] as const];
    });
  } finally {
    database.close();
  }
}

/** A private key by chance: an invalid one is drawn again. */
function randomKey(config: AppConfig): Uint8Array {
  for (;;) {
    const key = webRandom(32);
    try {
      accountSigner(networkOf(config), key);
      return key;
    } catch {
      // Zero, or not below the order of the curve: one in 2^32.
    }
  }
}
