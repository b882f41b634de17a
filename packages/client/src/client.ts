import './dispose-symbols.ts';
import {
  type AccountSigner,
  currentDevices,
  deriveDeviceId,
  deviceSigner,
  encodeBase64url,
  type Network,
  signingDevice,
} from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import { Account } from './account.ts';
import {
  deviceKeys,
  networkRecords,
  type OwnRecord,
  ownCertificates,
  ownKey,
  ownRecords,
} from './accounts/account-rows.ts';
import {
  accountOfKey,
  adoptApproval,
  checkApproval,
  type DeviceApproval,
  type DeviceRequest,
  makeDeviceRequest,
} from './accounts/device-pairing.ts';
import { resolveOwnState } from './accounts/device-states.ts';
import { homeRelay } from './accounts/home-relay.ts';
import {
  askOwnDevices,
  certificateLead,
  certificateLifetime,
  contactsWait,
} from './accounts/new-device.ts';
import { verifyAndStoreRoute } from './accounts/routes.ts';
import {
  deviceKeyBytes,
  requireAccountKey,
  signerOf,
  storedAccountKey,
} from './accounts/stored-keys.ts';
import { defaultRetry, type RetryPolicy } from './connect/backoff.ts';
import { Discovery } from './connect/discovery.ts';
import { openRegistry, type RegistrySource } from './connect/registry.ts';
import { RelayConnection } from './connect/relay-connection.ts';
import { deviceIdentity } from './connect/session.ts';
import type { Transport } from './connect/transport.ts';
import { Waker } from './connect/waker.ts';
import { skipBuilding } from './conversations/build-conversations.ts';
import type { AccountCore, Core } from './core.ts';
import { type Clock, systemClock, unixSeconds, webRandom } from './environment.ts';
import { ClientError } from './errors.ts';
import { EventHub } from './events/event-hub.ts';
import { WakeSignal } from './follow/wake-signal.ts';
import { given } from './given.ts';
import { loadPart } from './load-part.ts';
import { allParts } from './parts.ts';
import type { Store } from './store/index.ts';
import { watched } from './store/watched.ts';
import { defaultReading, type ReadingLimits } from './sync/budget.ts';
import { Sender } from './sync/sender.ts';

/** Everything a client needs; nothing is taken from globals. */
export interface ClientOptions {
  readonly network: Network;
  /** The list of relays: an object, or the nodes of the chain that has it (07 §A6). */
  readonly registry: RegistrySource;
  readonly transport: Transport;
  /** Stays open when the client is closed; its owner closes it. */
  readonly store: Store;
  readonly clock?: Clock;
  readonly random?: Random;
  /** `websocket` by default, with HTTPS if no WebSocket can be opened. */
  readonly prefer?: 'websocket' | 'http';
  readonly retry?: RetryPolicy;
  /** Milliseconds one exchange with a relay may take; 30 seconds by default. */
  readonly timeout?: number;
  /** Limits of one synchronization, by group, channel and host. */
  readonly reading?: Partial<ReadingLimits>;
}

/** Options of {@link Client.setUp}. */
export interface NewAccountOptions {
  /** 32 bytes in memory, or a signer such as a wallet; a new key by default. */
  readonly accountKey?: Uint8Array | AccountSigner;
  /**
   * Whether `accountKey` was made just now and no account has it. Then a relay that knows none is
   * enough, although others give no answer; for any other key `setUp` asks more of them.
   */
  readonly isNewKey?: boolean | undefined;
  /**
   * Whether the account key is stored. A new key always is, because no other copy exists. A key
   * that was passed in is stored only if this is `true`.
   */
  readonly keepKey?: boolean;
  /** The home relay; a random active relay of the registry by default. */
  readonly relayId?: string | undefined;
  /** Of an invite to the home relay, if that takes new accounts by invite only. */
  readonly inviteCode?: string | undefined;
  /** Removes all existing devices, if neither the old relay nor an old device is left (03 §11.3). */
  readonly recover?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A client: one store, which holds one device of one account, and the relays of one network.
 *
 * @example
 * const account = await client.setUp();
 * const { text } = await account.contacts.invite();
 */
export class Client implements AsyncDisposable {
  readonly #core: Core;
  /** By ID and transport. */
  readonly #relays = new Map<string, RelayConnection>();
  readonly #senders: Sender[] = [];
  readonly #closing: AbortController;
  #account: Account | undefined;

  private constructor(core: Core, closing: AbortController) {
    this.#core = core;
    this.#closing = closing;
  }

  /**
   * Opens a client and binds its store to the network. No relay is called.
   *
   * @throws ClientError `store_mismatch` for the store of another network; ProtocolError
   *   `bad_request` for nodes of the chain that cannot be used
   * @example
   * import { Client, MemoryStore, webTransport } from '@posthouse/client';
   * import { staticRegistry } from '@posthouse/protocol';
   * const registry = staticRegistry(network, { context: network.context, relays: [] });
   * const store = new MemoryStore();
   * await using opened = await Client.open({ network, registry, transport: webTransport, store });
   */
  static async open(options: ClientOptions): Promise<Client> {
    const { network, transport } = options;
    const store = watched(options.store);
    const { clock = systemClock, random = webRandom, prefer = 'websocket' } = options;
    const { retry = defaultRetry, timeout } = options;
    const registry = openRegistry(options.registry, { network, transport, store, clock });
    await bindStore(network, store);
    const discovery = new Discovery({ network, registry, transport, store, clock });
    const parts = { network, discovery, transport, clock, random, waker: new Waker(clock) };
    const closing = new AbortController();
    const core: Core = {
      ...parts,
      registry,
      store,
      events: new EventHub(store),
      closed: closing.signal,
      reading: { ...defaultReading, ...options.reading },
      retry,
      later: async () => {
        Object.assign(given, allParts);
        return await loadPart(() => import('./later.ts'));
      },
      connect: (relayId, identity, transportWanted = prefer) =>
        new RelayConnection(parts, {
          relayId,
          identity,
          // A session of the account key lasts for a few calls.
          prefer: identity.mode === 'account' ? 'http' : transportWanted,
          retry,
          ...(timeout !== undefined && { timeout }),
        }),
    };
    return new Client(core, closing);
  }

  /**
   * Sets this store up: with a new account, or as another device of an existing account. After a
   * failure it can be called again and continues where it stopped.
   *
   * @throws ClientError `already_set_up`, `no_relay`, `invalid_input`; `registration_refused` if the
   *   relay takes the account only with an invite code, or after its operator let it in
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * const account = await client.setUp();
   * console.log(account.id);
   */
  async setUp(options: NewAccountOptions = {}): Promise<Account> {
    const { relayId, inviteCode, recover, isNewKey: isMadeNow } = options;
    const { signal = new AbortController().signal } = options;
    const key = await this.#accountKey(options);
    const { setUp } = await this.#core.later();
    await setUp(this.#core, { ...key, isMadeNow, relayId, inviteCode, recover, signal });
    return await this.account();
  }

  /**
   * Discards a set-up, restore or join that was begun and has not ended, with its keys, so that the
   * store can be set up with another account. Without one, nothing happens.
   *
   * @param options.evenIfSent also one that may have taken effect. The account stays, with a device
   *   that is lost; if the key was made here, save `accountKey()` first, or the account is lost too
   * @throws ClientError `already_set_up` if the store holds an account; `already_sent` if the set-up
   *   may have taken effect
   * @example
   * await client.discardSetUp().catch((error: unknown) => {
   *   if (!isClientError(error, 'already_set_up')) throw error;
   * });
   */
  async discardSetUp(options: { readonly evenIfSent?: boolean } = {}): Promise<void> {
    const { discardSetUp } = await this.#core.later();
    await discardSetUp(this.#core, options);
  }

  /**
   * Returns the account of the store.
   *
   * @throws ClientError `not_set_up`
   * @example
   * const account = await client.account();
   */
  async account(): Promise<Account> {
    if (this.#account !== undefined) return this.#account;
    const record = await this.#core.store.read((tx) => ownRecords.get(tx, ownKey));
    if (record === undefined)
      throw new ClientError('not_set_up', 'the store holds no account: set it up first');
    this.#account = new Account(await this.#accountCore(record));
    return this.#account;
  }

  /**
   * Returns the account's key, 32 bytes, for a backup; `undefined` if this device does not have it.
   *
   * @example
   * const key = await client.accountKey();
   */
  accountKey(): Promise<Uint8Array | undefined> {
    return storedAccountKey(this.#core.store);
  }

  /**
   * Makes a request to add this store's device to an account, or to renew its certificate with the
   * same keys. The request holds no secret: bring it to a device with the account key, which calls
   * `account.devices.approve`.
   *
   * @param accountPublicKey base64url; `Account.publicKey` on an existing device of the account
   * @throws ClientError `invalid_input`; `already_set_up` if the store holds another account, or asked
   *   or began to set up one: `discardSetUp` ends that
   * @example
   * const request = await client.requestDevice(publicKey);
   */
  async requestDevice(accountPublicKey: string): Promise<DeviceRequest> {
    const { network, store, random, clock } = this.#core;
    const account = accountOfKey(network, accountPublicKey);
    const record = await store.write(async (tx) => {
      const own = await ownRecords.get(tx, ownKey);
      const kept = await deviceKeys.get(tx, 'device');
      // A device of two accounts would show that one person has both.
      if ((own?.account ?? kept?.account ?? account) !== account) {
        throw new ClientError(
          'already_set_up',
          'this store is for another account: use another, or `discardSetUp`',
        );
      }
      // Stores of an earlier version do not have the account.
      if (kept?.account) return kept;
      const keys = {
        signingSeed: encodeBase64url(random(32)),
        encryptionKey: encodeBase64url(random(32)),
        ...kept,
        account,
      };
      await deviceKeys.put(tx, 'device', keys);
      return keys;
    });
    const notBefore = unixSeconds(clock) - certificateLead;
    return makeDeviceRequest(network, deviceSigner(network, deviceKeyBytes(record)), {
      accountPublicKey,
      notBefore,
      expiresAt: notBefore + certificateLifetime,
    });
  }

  /**
   * Completes the set-up of a requested device: verifies the approval, finds the home relay and
   * reads the device state, which must contain this device.
   *
   * @param options.accountPublicKey the same key as in the request; it is not read from the approval
   * @throws ClientError `verification_failed`, `wrong_device`, `device_removed`, `already_set_up`
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * import { readFile } from 'node:fs/promises';
   * import { parseDeviceApproval } from '@posthouse/client';
   * const [accountPublicKey = '', path = ''] = process.argv.slice(2);
   * const approval = await parseDeviceApproval(network, await readFile(path, 'utf8'));
   * const account = await client.completeDevice(approval, { accountPublicKey });
   */
  async completeDevice(
    approval: DeviceApproval,
    options: { readonly accountPublicKey: string; readonly signal?: AbortSignal | undefined },
  ): Promise<Account> {
    const core = this.#core;
    const { accountPublicKey, signal = new AbortController().signal } = options;
    const request = await this.requestDevice(accountPublicKey);
    const { account } = request.certificate;
    const deviceId = deriveDeviceId(core.network, request.certificate);
    await checkApproval(core.network, approval, { account, deviceId });
    await verifyAndStoreRoute(core, approval.route, { account, method: 'device approval', signal });
    await core.store.write((tx) => adoptApproval(tx, approval));
    const record = { account, publicKey: accountPublicKey, deviceId, awaitsContactsUntil: 0 };
    const accountCore = await this.#accountCore(record);
    const home = await accountCore.home();
    const state = await resolveOwnState(core, home, { account, signal });
    const now = unixSeconds(core.clock);
    if (!currentDevices(core.network, state, now).has(deviceId)) {
      throw new ClientError(
        'device_removed',
        'the account does not have this device: let it approve a new request',
      );
    }
    await core.store.write(async (tx) => {
      if ((await ownRecords.get(tx, ownKey)) !== undefined) return;
      await skipBuilding(tx);
      await ownRecords.put(tx, ownKey, { ...record, awaitsContactsUntil: now + contactsWait });
      await askOwnDevices(tx);
    });
    return await this.account();
  }

  /**
   * Ends following and closes the connections. Store and transport stay open. If the store fails, the
   * events that were being handled come again.
   *
   * @example
   * await client.close();
   */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#core.events.close();
    await Promise.all([
      ...this.#senders.map((sender) => sender.close()),
      ...[...this.#relays.values()].map((item) => item[Symbol.asyncDispose]()),
    ]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #accountKey(options: NewAccountOptions) {
    const { network, random, store } = this.#core;
    const { accountKey: given, keepKey: keep = false } = options;
    if (given !== undefined && !(given instanceof Uint8Array)) {
      return { signer: given, keepKey: undefined, isNewKey: false };
    }
    // The key of an interrupted set-up is the account's. It may be one that was passed in.
    const known = given ?? (await storedAccountKey(store));
    const key = known ?? newAccountKey(network, random);
    const keepKey = given === undefined || keep ? key : undefined;
    return { signer: signerOf(network, key), keepKey, isNewKey: known === undefined };
  }

  async #accountCore(record: OwnRecord): Promise<AccountCore> {
    const core = this.#core;
    const { network, store } = core;
    const { account, publicKey } = record;
    const kept = await store.read((tx) => deviceKeys.get(tx, 'device'));
    if (kept === undefined) throw missingKeys();
    const keys = deviceKeyBytes(kept);
    const signer = deviceSigner(network, keys);
    const certificate = async () => {
      const found = await store.read((tx) => ownCertificates.get(tx, ownKey));
      if (found === undefined) throw missingKeys();
      return found;
    };
    const identity = deviceIdentity(network, signer, certificate, account);
    const relay = (relayId: string) => this.#relay(relayId, identity);
    return {
      ...core,
      account,
      publicKey,
      device: { ...signer, ...signingDevice(network, account, signer) },
      encryptionKey: keys.encryptionKey,
      certificate,
      relay,
      relayOverHttp: (relayId) => this.#relay(relayId, identity, 'http'),
      wakeSignal: new WakeSignal(),
      stateReads: new Map(),
      sender: this.#newSender(),
      home: async () => relay(await homeRelay(core, account)),
      accountKey: (given) => requireAccountKey(network, store, { account, given }),
    };
  }

  #newSender(): Sender {
    const sender = new Sender();
    this.#senders.push(sender);
    return sender;
  }

  #relay(
    relayId: string,
    identity: Parameters<Core['connect']>[1],
    transport?: 'http',
  ): RelayConnection {
    const key = `${relayId} ${transport}`;
    let connection = this.#relays.get(key);
    if (connection === undefined) {
      connection = this.#core.connect(relayId, identity, transport);
      this.#relays.set(key, connection);
    }
    return connection;
  }
}

/** The error of a store without the device's keys, or without its certificate. */
function missingKeys(): ClientError {
  return new ClientError(
    'store_mismatch',
    'device keys are missing: restore the store, or add this device again',
  );
}

/** Binds a store to one network, permanently (01 N4). */
async function bindStore({ context, word }: Network, store: Store): Promise<void> {
  await store.write(async (tx) => {
    const bound = await networkRecords.get(tx, 'network');
    if (bound === undefined) await networkRecords.put(tx, 'network', { context, word });
    else if (bound.context !== context || bound.word !== word) {
      throw new ClientError(
        'store_mismatch',
        `the store belongs to ${bound.context}: use another store for this network`,
      );
    }
  });
}

/** Draws a P-256 private key; an invalid value is drawn again. */
function newAccountKey(network: Network, random: Random): Uint8Array {
  for (;;) {
    const key = random(32);
    try {
      network.primitives.p256.publicKey(key);
      return key;
    } catch {
      // Zero, or not below the order of the curve: one in 2^32.
    }
  }
}
