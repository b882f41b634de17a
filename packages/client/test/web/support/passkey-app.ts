/**
 * The program of a page whose secrets are opened by a passkey, or by a password: the account key, and
 * the key of its encrypted store. It keeps what an app keeps: wallets and documents.
 */
import {
  accountSigner,
  Network,
  openNep6Wallet,
  sealNep6Wallet,
  staticRegistry,
} from '@posthouse/protocol';
import {
  type Account,
  Client,
  isClientError,
  webRandom,
  webTransport,
} from '../../../src/index.ts';
import { encryptedStore } from '../../../src/store/encrypted.ts';
import { IndexedDbStore, webPrimitives } from '../../../src/web/index.ts';
import {
  createPasskey,
  openWithPasskey,
  type PasskeyDocument,
  type PasskeyPurpose,
  removePasskey,
} from '../../../src/web/passkey/index.ts';
import type { PageNetwork } from './app.ts';

/** What is stored of a secret, next to each other: neither part is a secret. */
interface Kept {
  readonly wallet: Awaited<ReturnType<typeof sealNep6Wallet>>;
  readonly passkeys: PasskeyDocument[];
}

// biome-ignore lint/suspicious/noExplicitAny: a page's storage, of which the project has no types.
const { localStorage } = globalThis as any;
const password = 'four words by chance';
const read = (purpose: PasskeyPurpose): Kept => JSON.parse(localStorage.getItem(purpose));
const write = (purpose: PasskeyPurpose, kept: Kept) =>
  localStorage.setItem(purpose, JSON.stringify(kept));

export class PasskeyApp {
  readonly #network: Network;
  readonly #registry: object;
  account: Account | undefined;
  /** Ends what waits for the person. */
  readonly stop = new AbortController();
  /** The domain of the passkeys, if it is not the page's host name. */
  rpId: string | undefined;
  /** `passkey` if the last call made or opened one, or the code of the failure that led to the password. */
  opened: string | undefined;

  constructor({ context, registry }: PageNetwork) {
    this.#network = new Network({ context, primitives: webPrimitives });
    this.#registry = registry;
  }

  /** Makes a secret with its wallet, and a passkey if that succeeds, and returns it. */
  async #newSecret(purpose: PasskeyPurpose): Promise<Uint8Array> {
    const { signal } = this.stop;
    const key = webRandom(32);
    const wallet = await sealNep6Wallet(this.#network, key, { password });
    const options = { name: `Ann ${purpose}`, fallback: wallet, purpose, signal };
    const passkeys: PasskeyDocument[] = [];
    try {
      passkeys.push(await createPasskey(this.#network, key, options));
      this.opened = 'passkey';
    } catch (error) {
      if (!isClientError(error)) throw error;
      this.opened = error.code;
    }
    write(purpose, { wallet, passkeys });
    return key;
  }

  /** Returns a secret by a passkey, or by the password if that fails. */
  async #secret(purpose: PasskeyPurpose): Promise<Uint8Array> {
    const { wallet, passkeys } = read(purpose);
    try {
      const site = this.rpId === undefined ? {} : { rpId: this.rpId };
      const { key } = await openWithPasskey(this.#network, passkeys, { purpose, ...site });
      this.opened = 'passkey';
      return key;
    } catch (error) {
      if (!isClientError(error)) throw error;
      this.opened = error.code;
      return (await openNep6Wallet(this.#network, wallet, { password })).privateKey;
    }
  }

  async #open(storeKey: Uint8Array): Promise<Client> {
    const network = this.#network;
    const options = { key: storeKey, primitives: webPrimitives };
    const store = await encryptedStore(await IndexedDbStore.open('app'), options);
    const registry = staticRegistry(network, this.#registry);
    return await Client.open({ network, registry, transport: webTransport, store });
  }

  /** Sets a new account up; its key is stored nowhere but in the wallet and the document. */
  async start(): Promise<string> {
    const client = await this.#open(await this.#newSecret('store-key'));
    const accountKey = await this.#newSecret('account-key');
    this.account = await client.setUp({ accountKey });
    accountKey.fill(0);
    return this.account.id;
  }

  /** Opens the store of an earlier visit. */
  async resume(): Promise<string> {
    this.account = await (await this.#open(await this.#secret('store-key'))).account();
    return this.account.id;
  }

  /** Does what needs the account key, if the store has an account. Returns the account of the key. */
  async renew(): Promise<string> {
    const secret = await this.#secret('account-key');
    const accountKey = accountSigner(this.#network, secret);
    await this.account?.devices.renew({ accountKey });
    return accountKey.account;
  }

  /** Adds a passkey of the account key. */
  async add(): Promise<number> {
    const { wallet, passkeys: others } = read('account-key');
    const key = await this.#secret('account-key');
    const options = { name: 'Ann again', fallback: wallet, others };
    const passkeys = [...others, await createPasskey(this.#network, key, options)];
    write('account-key', { wallet, passkeys });
    return passkeys.length;
  }

  /** Removes the first passkey of the account key. */
  async removeFirst(): Promise<number> {
    const { wallet, passkeys } = read('account-key');
    const left = await removePasskey(passkeys, passkeys[0] as PasskeyDocument);
    write('account-key', { wallet, passkeys: left });
    return left.length;
  }
}
