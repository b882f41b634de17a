/** The entry for apps that encrypt what a store holds (decision 0037). */
import '../dispose-symbols.ts';
import { decodeBase64url, encodeBase64url, utf8 } from '@posthouse/protocol';
import type { Primitives, Random } from '@posthouse/protocol/crypto';
import { webRandom } from '../environment.ts';
import { ClientError } from '../errors.ts';
import type { Store, StoreRange, StoreReader, StoreWriter } from './types.ts';

/** Options of {@link encryptedStore}. */
export interface EncryptionOptions {
  /** 32 bytes: they open the store, and without them it is lost. */
  readonly key: Uint8Array;
  readonly primitives: Primitives;
  readonly random?: Random;
}

/** Bytes of a nonce, before the ciphertext of each value. */
const nonceBytes = 12;

/** The row that shows whether a key is the store's. */
const probe = { collection: 'encryption', key: 'probe', text: 'posthouse' } as const;

/**
 * Wraps a store so that every value in it is encrypted (AES-256-GCM). An altered value, or one moved
 * to another row, is an error when it is read. Not hidden: names of collections, keys of rows (IDs of
 * accounts, groups and messages), numbers and sizes. Not noticed: a whole store or a row that is put
 * back to an older version, and deleted rows.
 *
 * @param store a new one, or one that was encrypted with this key; disposed with the wrapper
 * @throws ClientError `store_mismatch` for another key, or a store that is not encrypted;
 *   `invalid_input` for a key of another length
 * @example
 * import { encryptedStore } from '@posthouse/client/encrypted-store';
 * import { nodePrimitives, SqliteStore } from '@posthouse/client/node';
 * const key = crypto.getRandomValues(new Uint8Array(32)); // to be had again at the next start
 * const file = SqliteStore.open('store.sqlite');
 * await using store = await encryptedStore(file, { key, primitives: nodePrimitives });
 */
export async function encryptedStore(
  store: Store,
  { key, primitives, random = webRandom }: EncryptionOptions,
): Promise<Store> {
  if (key.length !== 32)
    throw new ClientError(
      'invalid_input',
      'the key has not 32 bytes: pass the one that the store was made with',
    );
  const cipher = new ValueCipher(key, primitives, random);
  await store.write(async (tx) => {
    const { collection, key: row, text } = probe;
    const known = await tx.get(collection, row);
    const isBound = (await tx.get('network', 'network')) !== undefined;
    if (known === undefined && !isBound) {
      await tx.put(collection, row, cipher.seal(collection, row, text));
    } else if (known === undefined || cipher.open(collection, row, known) !== text) {
      const what = known === undefined ? 'is not encrypted' : 'is encrypted with another key';
      throw new ClientError('store_mismatch', `the store ${what}: use another store or key`);
    }
  });
  return new EncryptedStore(store, cipher);
}

/** What this wrapper passes on, if the store has it. */
interface Shared extends Store {
  lock?(name: string, options: { readonly signal: AbortSignal }): Promise<Disposable>;
  watch?(changed: () => void): Disposable;
}

class EncryptedStore implements Shared {
  readonly #store: Store;
  readonly #cipher: ValueCipher;
  readonly lock?: NonNullable<Shared['lock']>;
  readonly watch?: NonNullable<Shared['watch']>;

  constructor(store: Shared, cipher: ValueCipher) {
    this.#store = store;
    this.#cipher = cipher;
    if (store.lock !== undefined) this.lock = store.lock.bind(store);
    if (store.watch !== undefined) this.watch = store.watch.bind(store);
  }

  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    return this.#store.read((tx) => work(new EncryptedReader(tx, this.#cipher)));
  }

  write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#store.write((tx) => work(new EncryptedWriter(tx, this.#cipher)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }
}

class EncryptedReader implements StoreReader {
  readonly #tx: StoreReader;
  readonly #cipher: ValueCipher;

  constructor(tx: StoreReader, cipher: ValueCipher) {
    this.#tx = tx;
    this.#cipher = cipher;
  }

  async get(collection: string, key: string): Promise<string | undefined> {
    const sealed = await this.#tx.get(collection, key);
    return sealed === undefined ? undefined : this.#open(collection, key, sealed);
  }

  async list(collection: string, range?: StoreRange): Promise<(readonly [string, string])[]> {
    const rows = await this.#tx.list(collection, range);
    return rows.map(([key, sealed]) => [key, this.#open(collection, key, sealed)] as const);
  }

  #open(collection: string, key: string, sealed: string): string {
    const text = this.#cipher.open(collection, key, sealed);
    if (text !== undefined) return text;
    throw new ClientError(
      'store_damaged',
      `the row ${collection}/${key} was altered: put a backup of the store in its place, or add this device again`,
    );
  }
}

class EncryptedWriter extends EncryptedReader implements StoreWriter {
  readonly #writer: StoreWriter;
  readonly #sealer: ValueCipher;

  constructor(tx: StoreWriter, cipher: ValueCipher) {
    super(tx, cipher);
    this.#writer = tx;
    this.#sealer = cipher;
  }

  put(collection: string, key: string, text: string): Promise<void> {
    return this.#writer.put(collection, key, this.#sealer.seal(collection, key, text));
  }

  delete(collection: string, key: string): Promise<void> {
    return this.#writer.delete(collection, key);
  }
}

/**
 * Seals values for their rows: base64url of nonce, ciphertext and tag, bound to collection and key.
 * Nonces are random: 2^32 values are sealed with a key before two of them meet with a chance of 2^-33.
 */
class ValueCipher {
  readonly #key: Uint8Array;
  readonly #primitives: Primitives;
  readonly #random: Random;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  constructor(secret: Uint8Array, primitives: Primitives, random: Random) {
    const [salt, info] = [new Uint8Array(0), utf8('posthouse encrypted store 1')];
    this.#key = primitives.hkdfSha256({ secret, salt, info, length: 32 });
    this.#primitives = primitives;
    this.#random = random;
  }

  seal(collection: string, row: string, text: string): string {
    const nonce = this.#random(nonceBytes);
    const sealed = this.#primitives.aesGcm.seal({
      ...{ key: this.#key, nonce, aad: aadOf(collection, row), data: utf8(text) },
    });
    const bytes = new Uint8Array(nonceBytes + sealed.length);
    bytes.set(nonce);
    bytes.set(sealed, nonceBytes);
    return encodeBase64url(bytes);
  }

  /** @returns `undefined` for what was not sealed for this row with this key */
  open(collection: string, row: string, sealed: string): string | undefined {
    const bytes = decodeBase64url(sealed);
    if (bytes === undefined || bytes.length < nonceBytes + 16) return undefined;
    const data = this.#primitives.aesGcm.open({
      ...{ key: this.#key, nonce: bytes.subarray(0, nonceBytes) },
      ...{ aad: aadOf(collection, row), data: bytes.subarray(nonceBytes) },
    });
    return data === undefined ? undefined : this.#decoder.decode(data);
  }
}

/** Names of collections have no NUL, so that no two rows have the same. */
function aadOf(collection: string, row: string): Uint8Array {
  return utf8(`${collection}\0${row}`);
}
