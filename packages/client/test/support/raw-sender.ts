/** Sends whatever a test wants, with a device's real keys: what no well-behaved client would. */

import {
  type AccountDeviceState,
  type Authorization,
  accountSigner,
  currentDevices,
  type DeviceCertificate,
  decodeBase64url,
  deviceSigner,
  type SealedMessage,
  sealMessage,
  signingDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { Discovery } from '../../src/connect/discovery.ts';
import { RelayConnection } from '../../src/connect/relay-connection.ts';
import { deviceIdentity } from '../../src/connect/session.ts';
import { Waker } from '../../src/connect/waker.ts';
import type { Store } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { network, type RelayWithClients } from './relay-with-clients.ts';

interface Options {
  readonly authorization?: Authorization | undefined;
  readonly messageId?: string;
}

export class RawSender implements AsyncDisposable {
  readonly #world: RelayWithClients;
  readonly #store: Store;
  readonly #things = new AsyncDisposableStack();

  constructor(world: RelayWithClients, store: Store) {
    this.#world = world;
    this.#store = store;
  }

  async seal(to: string, content: JsonObject, { messageId }: Options = {}): Promise<SealedMessage> {
    const { account, signer } = await this.#device();
    const now = this.#world.clock.now();
    const state = await this.#kept<{ state: AccountDeviceState }>('states', to);
    return sealMessage(network, {
      from: signingDevice(network, account, signer),
      to,
      createdAt: now,
      content,
      ...(messageId !== undefined && { messageId }),
      recipients: [...currentDevices(network, state.state, now).values()],
      random: nodeRandom,
    });
  }

  /** Sends content to an account, with the grant it gave unless a test says otherwise. */
  async send(to: string, content: JsonObject, options: Options = {}): Promise<SealedMessage> {
    const { account, signer } = await this.#device();
    const { clock, registry, relay, ca } = this.#world;
    const transport = this.#things.use(new NodeTransport({ ca }));
    const discovery = new Discovery({ network, registry, transport, store: this.#store, clock });
    const certificate = () => this.#kept<DeviceCertificate>('certificates', 'own');
    const connection = this.#things.use(
      new RelayConnection(
        { network, discovery, transport, clock, random: nodeRandom, waker: new Waker(clock) },
        {
          relayId: relay.relayId,
          identity: deviceIdentity(network, signer, certificate, account),
          prefer: 'http',
        },
      ),
    );
    const sealed = await this.seal(to, content, options);
    const authorization =
      to === account ? undefined : (options.authorization ?? (await this.grantOf(to)));
    const params = { ...sealed, ...(authorization !== undefined && { authorization }) };
    await connection.call('message.send', params, { signal: AbortSignal.timeout(30_000) });
    return sealed;
  }

  /** The grant a contact gave this account. */
  async grantOf(account: string): Promise<Authorization> {
    const row = await this.#kept<{ record: { grant_from_contact: Authorization } }>(
      'contacts',
      account,
    );
    return row.record.grant_from_contact;
  }

  /** The device's signer, to sign what a test makes up. */
  async signing() {
    const { account, signer } = await this.#device();
    return signingDevice(network, account, signer);
  }

  /** The account's own state and key, to sign states that are not published. */
  async account() {
    const own = await this.#kept<{ account: string }>('own', 'own');
    const key = decodeBase64url(await this.#kept<string>('account-keys', 'account'));
    const { state } = await this.#kept<{ state: AccountDeviceState }>('states', own.account);
    return { state, signer: accountSigner(network, key as Uint8Array) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#things.disposeAsync();
  }

  async #device() {
    const keys = await this.#kept<{ signingSeed: string; encryptionKey: string }>(
      'device-keys',
      'device',
    );
    const own = await this.#kept<{ account: string }>('own', 'own');
    const signer = deviceSigner(network, {
      signingSeed: decodeBase64url(keys.signingSeed) as Uint8Array,
      encryptionKey: decodeBase64url(keys.encryptionKey) as Uint8Array,
    });
    return { account: own.account, signer };
  }

  async #kept<T>(collection: string, key: string): Promise<T> {
    const text = await this.#store.read((tx) => tx.get(collection, key));
    if (text === undefined) throw new Error(`${collection}/${key} is not kept`);
    return JSON.parse(text) as T;
  }
}
