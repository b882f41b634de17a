import {
  type AccountSigner,
  accountSigner,
  currentDevices,
  deriveDeviceId,
  deviceSigner,
  encodeBase64url,
  type Network,
  type Registry,
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
  checkApproval,
  type DeviceApproval,
  type DeviceRequest,
  makeDeviceRequest,
} from './accounts/device-pairing.ts';
import { resolveOwnState } from './accounts/device-states.ts';
import { homeRelay } from './accounts/home-relay.ts';
import { verifyAndStoreRoute } from './accounts/routes.ts';
import {
  certificateLead,
  certificateLifetime,
  contactsWait,
  type SetUpOptions,
  setUp,
} from './accounts/setup.ts';
import { deviceKeyBytes, requireAccountKey, storedAccountKey } from './accounts/stored-keys.ts';
import { defaultRetry, type RetryPolicy } from './connect/backoff.ts';
import { Discovery } from './connect/discovery.ts';
import { RelayConnection } from './connect/relay-connection.ts';
import { deviceIdentity } from './connect/session.ts';
import type { Transport } from './connect/transport.ts';
import type { AccountCore, Core } from './core.ts';
import { type Clock, systemClock, unixSeconds, webRandom } from './environment.ts';
import { ClientError } from './errors.ts';
import { EventBuffer } from './follow/event-buffer.ts';
import type { Store } from './store/index.ts';
import { defaultReading, type ReadingLimits } from './sync/budget.ts';
import { enqueueTask } from './sync/tasks.ts';

export interface ClientOptions {
  readonly network: Network;
  readonly registry: Registry;
  readonly transport: Transport;
  /** Closed by whoever opened it. */
  readonly store: Store;
  readonly clock?: Clock;
  readonly random?: Random;
  /** `websocket` by default, with HTTPS where no WebSocket can be had. */
  readonly prefer?: 'websocket' | 'http';
  readonly retry?: RetryPolicy;
  /** Milliseconds one exchange with a relay may take; 30 seconds by default. */
  readonly timeout?: number;
  /** How much of a group, a channel and a host one synchronization reads. */
  readonly reading?: Partial<ReadingLimits>;
}

export interface NewAccountOptions {
  /** 32 bytes in memory, or a signer with a wallet behind it; a new key by default. */
  readonly accountKey?: Uint8Array | AccountSigner;
  /**
   * Whether the account key is kept in the store. A new key always is: nobody else has it. A key
   * that was given is not, unless this says so.
   */
  readonly keepKey?: boolean;
  readonly relayId?: string | undefined;
  readonly recover?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A client: one store, which holds one device of one account, and the relays of one network.
 *
 * @example
 * await using client = await Client.open({ network, registry, transport, store });
 * const account = await client.setUp();
 * const invite = await account.contacts.invite();
 */
export class Client implements AsyncDisposable {
  readonly #core: Core;
  readonly #relays = new Map<string, RelayConnection>();
  readonly #httpRelays = new Map<string, RelayConnection>();
  #account: Account | undefined;

  private constructor(core: Core) {
    this.#core = core;
  }

  /** @throws ClientError `store_mismatch` for the store of another network */
  static async open(options: ClientOptions): Promise<Client> {
    const { network, registry, transport, store } = options;
    const { clock = systemClock, random = webRandom, prefer = 'websocket' } = options;
    const { retry = defaultRetry, timeout } = options;
    await bindStore(network, store);
    const discovery = new Discovery({ network, registry, transport, store, clock });
    const parts = { network, discovery, transport, clock, random };
    const core: Core = {
      ...parts,
      registry,
      store,
      reading: { ...defaultReading, ...options.reading },
      retry,
      connect: (relayId, identity, transportWanted = prefer) =>
        new RelayConnection(parts, {
          relayId,
          identity,
          // A session of the account key is a matter of a few calls.
          prefer: identity.mode === 'account' ? 'http' : transportWanted,
          retry,
          ...(timeout !== undefined && { timeout }),
        }),
    };
    return new Client(core);
  }

  /**
   * Sets this store up: a new account on a relay, or this device as another one of an account that
   * exists. May be called again after any failure; it goes on where it stood.
   *
   * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  async setUp(options: NewAccountOptions = {}): Promise<Account> {
    const { relayId, recover, signal = new AbortController().signal } = options;
    const { signer, keepKey, isNewKey } = await this.#accountKey(options);
    const request: SetUpOptions = { signer, keepKey, isNewKey, relayId, recover, signal };
    await setUp(this.#core, request);
    return await this.account();
  }

  /** The account of the store. @throws ClientError `not_set_up` */
  async account(): Promise<Account> {
    if (this.#account !== undefined) return this.#account;
    const record = await this.#core.store.read((tx) => ownRecords.get(tx, ownKey));
    if (record === undefined) throw new ClientError('not_set_up', 'no account is set up here');
    this.#account = new Account(await this.#accountCore(record));
    return this.#account;
  }

  /**
   * Makes this store's device ask an account to be one of its devices. The request goes to where
   * the account key is (`account.devices.approve`), by any way: it holds no secret. Called again,
   * or on a device that is set up, it asks for a new period with the same keys.
   *
   * @param accountPublicKey base64url; `Account.publicKey` on a device the account has
   * @throws ClientError `invalid_input`
   */
  async requestDevice(accountPublicKey: string): Promise<DeviceRequest> {
    const { network, store, random, clock } = this.#core;
    const record = await store.write(async (tx) => {
      const kept = await deviceKeys.get(tx, 'device');
      if (kept !== undefined) return kept;
      const keys = {
        signingSeed: encodeBase64url(random(32)),
        encryptionKey: encodeBase64url(random(32)),
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
   * Takes the approval of this device, finds the account's home relay and reads the account's
   * state there, in which this device must be.
   *
   * @param accountPublicKey the same as in the request: the approval does not decide about it
   * @throws ClientError `verification_failed`; RelayRefused, RelayUnreachable, RelayMisbehaviour
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
    await core.store.write((tx) => ownCertificates.put(tx, ownKey, approval.certificate));
    const record = { account, publicKey: accountPublicKey, deviceId, awaitsContactsUntil: 0 };
    const accountCore = await this.#accountCore(record);
    const home = await accountCore.home();
    const state = await resolveOwnState(core, home, { account, signal });
    const now = unixSeconds(core.clock);
    if (!currentDevices(core.network, state, now).has(deviceId)) {
      throw new ClientError('verification_failed', 'the account does not have this device');
    }
    await core.store.write(async (tx) => {
      if ((await ownRecords.get(tx, ownKey)) !== undefined) return;
      await ownRecords.put(tx, ownKey, { ...record, awaitsContactsUntil: now + contactsWait });
      await enqueueTask(tx, { kind: 'request-snapshot' });
      await enqueueTask(tx, { kind: 'request-groups' });
    });
    return await this.account();
  }

  /** Closes the connections. The store and the transport stay open. */
  async [Symbol.asyncDispose](): Promise<void> {
    const connections = [...this.#relays.values(), ...this.#httpRelays.values()];
    await Promise.all(connections.map((item) => item[Symbol.asyncDispose]()));
  }

  async #accountKey(options: NewAccountOptions) {
    const { network, random, store } = this.#core;
    const { accountKey: given, keepKey: keep = false } = options;
    if (given !== undefined && !(given instanceof Uint8Array)) {
      return { signer: given, keepKey: undefined, isNewKey: false };
    }
    // The key that an interrupted set-up made is the account's, and nobody else has it.
    const key = given ?? (await storedAccountKey(store)) ?? newAccountKey(network, random);
    const keepKey = given === undefined || keep ? key : undefined;
    return { signer: accountSigner(network, key), keepKey, isNewKey: given === undefined };
  }

  async #accountCore(record: OwnRecord): Promise<AccountCore> {
    const core = this.#core;
    const { network, store } = core;
    const { account, publicKey } = record;
    const kept = await store.read((tx) => deviceKeys.get(tx, 'device'));
    if (kept === undefined) throw new ClientError('store_mismatch', 'the device keys are missing');
    const keys = deviceKeyBytes(kept);
    const signer = deviceSigner(network, keys);
    const certificate = async () => {
      const found = await store.read((tx) => ownCertificates.get(tx, ownKey));
      if (found === undefined) {
        throw new ClientError('store_mismatch', 'the device certificate is missing');
      }
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
      relayOverHttp: (relayId) => this.#relayOverHttp(relayId, identity),
      eventBuffer: new EventBuffer(),
      sending: new Set(),
      home: async () => relay(await homeRelay(core, account)),
      accountKey: (given) => requireAccountKey(network, store, { account, given }),
    };
  }

  #relay(relayId: string, identity: Parameters<Core['connect']>[1]): RelayConnection {
    let connection = this.#relays.get(relayId);
    if (connection === undefined) {
      connection = this.#core.connect(relayId, identity);
      this.#relays.set(relayId, connection);
    }
    return connection;
  }

  #relayOverHttp(relayId: string, identity: Parameters<Core['connect']>[1]): RelayConnection {
    let connection = this.#httpRelays.get(relayId);
    if (connection === undefined) {
      connection = this.#core.connect(relayId, identity, 'http');
      this.#httpRelays.set(relayId, connection);
    }
    return connection;
  }
}

/** A store belongs to one network for good (01 N4). */
async function bindStore({ context, word }: Network, store: Store): Promise<void> {
  await store.write(async (tx) => {
    const bound = await networkRecords.get(tx, 'network');
    if (bound === undefined) await networkRecords.put(tx, 'network', { context, word });
    else if (bound.context !== context || bound.word !== word) {
      throw new ClientError('store_mismatch', `the store belongs to ${bound.context}`);
    }
  });
}

/** A P-256 private key; the few values that are none are drawn again. */
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
