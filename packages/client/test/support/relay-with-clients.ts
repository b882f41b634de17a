/** A network with real relays over real TLS sockets, and accounts with their devices. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Network, type Registry, staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { nodePrimitives } from '@posthouse/protocol/node';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { afterAll, beforeAll } from 'vitest';
import { engine, RelayData } from '../../../relay/test/support/engine.ts';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import {
  type Account,
  type AccountEvent,
  Client,
  type ClientOptions,
  MemoryStore,
  type NewAccountOptions,
  type Store,
} from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { LeapingClock } from './clock.ts';

export const network = new Network({
  context: `neo:860833102:0x${'5a'.repeat(20)}`,
  primitives: nodePrimitives,
});

/** Tests neither meet the relay's rate limits nor wait for it. */
const generous = { accountRate: 1e9, accountBurst: 1e9, addressRate: 1e9, addressBurst: 1e9 };

/**
 * @example
 * await using world = await RelayWithClients.start();
 * const [ann, bob] = await world.friends();
 */
export class RelayWithClients implements AsyncDisposable {
  readonly clock = new LeapingClock();
  readonly #config: PartialConfig;
  readonly #parts = new AsyncDisposableStack();
  #folder: ReturnType<typeof temporaryFolder> | undefined;
  /** The relay's, if this test runs once per engine. */
  #data: RelayData | undefined;
  #relay: Relay | undefined;

  constructor(config: PartialConfig = {}) {
    this.#config = config;
  }

  static async start(config: PartialConfig = {}): Promise<RelayWithClients> {
    const world = new RelayWithClients(config);
    await world.start();
    return world;
  }

  async start(): Promise<void> {
    this.#folder = temporaryFolder();
    if (engine !== undefined) this.#data = await RelayData.withSchema();
    await this.startRelay();
  }

  get folder(): string {
    if (this.#folder === undefined) throw new Error('the relay was not started');
    return this.#folder.path;
  }

  get relay(): Relay {
    if (this.#relay === undefined) throw new Error('the relay is stopped');
    return this.#relay;
  }

  /** Authority that signed the relay's certificate, PEM. */
  get ca(): string {
    return readFileSync(join(this.folder, 'relay', 'tls', 'ca.pem'), 'utf8');
  }

  get registry(): Registry {
    const text = readFileSync(join(this.folder, 'relay', 'registry.json'), 'utf8');
    return staticRegistry(network, parseJson(text));
  }

  async startRelay(): Promise<void> {
    const { limits, ...config } = this.#config;
    this.#relay = await Relay.start(
      {
        network: network.context,
        dev: true,
        ...this.#data?.config,
        data: join(this.folder, 'relay'),
        listen: '127.0.0.1:0',
        log: 'silent',
        // Relays of a file do not reach each other: routes need no replicas.
        federation: { listen: '' },
        ...config,
        limits: { ...generous, ...limits },
      },
      { clock: this.clock },
    );
  }

  async stopRelay(): Promise<void> {
    await this.#relay?.[Symbol.asyncDispose]();
    this.#relay = undefined;
  }

  /** A client of this world; its store outlives it where the test gives one. */
  async client(options: Partial<ClientOptions> & { readonly store?: Store } = {}): Promise<Client> {
    const transport = this.#parts.use(new NodeTransport({ ca: this.ca }));
    return this.#parts.use(
      await Client.open({
        network,
        registry: this.registry,
        transport,
        store: new MemoryStore(),
        clock: this.clock,
        ...options,
      }),
    );
  }

  /** A new account on the relay. */
  async person(options: Partial<ClientOptions> & NewAccountOptions = {}): Promise<Account> {
    return await (await this.client(options)).setUp(options);
  }

  /** Two people who are contacts. */
  async friends(): Promise<[Account, Account]> {
    const [ann, bob] = [await this.person(), await this.person()];
    await befriend(ann, bob);
    return [ann, bob];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
    await this.stopRelay();
    await this.#data?.[Symbol.asyncDispose]();
    this.#folder?.[Symbol.dispose]();
  }
}

/**
 * Starts a relay before the tests of the file and stops it after them.
 * @example
 * const world = relayWithClients({ host: { channels: true } });
 */
export function relayWithClients(config: PartialConfig = {}): RelayWithClients {
  const world = new RelayWithClients(config);
  beforeAll(() => world.start());
  afterAll(() => world[Symbol.asyncDispose]());
  return world;
}

/** Makes two accounts contacts of each other: an invite, a request, its acceptance. */
export async function befriend(ann: Account, bob: Account): Promise<void> {
  await bob.contacts.join((await ann.contacts.invite()).text);
  await ann.sync();
  await ann.contacts.approve(bob.id);
  await bob.sync();
}

/** Texts of the messages an account shows, in order of arrival. */
/** Events without the statuses of what the account wrote itself. */
export function withoutStatus(events: readonly AccountEvent[]): AccountEvent[] {
  return events.filter(({ kind }) => kind !== 'message-status');
}

export async function texts(account: Account): Promise<string[]> {
  const rows = await account.messages.list();
  return rows.map((row) => row.body?.text ?? '');
}
