/** Three relays that federate, and accounts whose homes are on any of them. */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { afterAll, beforeAll } from 'vitest';
import { DevNetwork } from '../../../relay/src/dev/dev-network.ts';
import { engine, RelayData } from '../../../relay/test/support/engine.ts';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import { type Account, Client, type ClientOptions, MemoryStore } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { LeapingClock } from '../support/clock.ts';
import { network } from '../support/relay-with-clients.ts';

const unlimited = { accountRate: 1e9, accountBurst: 1e9, addressRate: 1e9, addressBurst: 1e9 };
/** Relays on loopback all have one address. */
const wire = { peerHandshakesPerAddress: 100, peerHandshakeRate: 1e6, peerHandshakeBurst: 1e6 };

export type RelayName = 'a' | 'b' | 'c';

/**
 * @example
 * const world = relaysWithClients();
 * const ann = await world.person('a');
 */
export class RelaysWithClients implements AsyncDisposable {
  /** Of relays and clients. */
  readonly clock = new LeapingClock();
  readonly #parts = new AsyncDisposableStack();
  #network: DevNetwork | undefined;

  /** The folder of the network. */
  get folder(): string {
    return dirname(this.network.registryFile);
  }

  async start(): Promise<void> {
    const { path } = this.#parts.use(temporaryFolder());
    const data = new Map<string, RelayData>();
    for (const name of ['a', 'b', 'c']) {
      if (engine !== undefined) data.set(name, this.#parts.use(await RelayData.withSchema()));
    }
    this.#network = this.#parts.use(
      await DevNetwork.start({
        folder: path,
        network: network.context,
        clock: () => this.clock,
        config: (name) => ({
          ...data.get(name)?.config,
          log: 'silent',
          limits: { ...unlimited, ...wire },
        }),
      }),
    );
  }

  get network(): DevNetwork {
    if (this.#network === undefined) throw new Error('the relays were not started');
    return this.#network;
  }

  relayId(name: RelayName): string {
    return this.network.relay(name).server.relayId;
  }

  /** The HTTPS address of a relay in the registry. */
  endpoint(name: RelayName): string {
    const { relays } = JSON.parse(readFileSync(this.network.registryFile, 'utf8'));
    const entries: { relay_id: string; endpoint: string }[] = relays;
    const found = entries.find(({ relay_id }) => relay_id === this.relayId(name));
    return found?.endpoint.replace(/\/$/, '') ?? '';
  }

  /** A transport that reaches all relays. */
  transport(): NodeTransport {
    const ca = readFileSync(this.network.authorityFile, 'utf8');
    return this.#parts.use(new NodeTransport({ ca }));
  }

  /** A client that can reach all relays; its store is the test's, or a new one. */
  async client(options: Partial<ClientOptions> = {}): Promise<Client> {
    const registry = staticRegistry(
      network,
      parseJson(readFileSync(this.network.registryFile, 'utf8')),
    );
    const { transport = this.transport(), store = new MemoryStore() } = options;
    const parts = { network, registry, clock: this.clock };
    return this.#parts.use(await Client.open({ ...parts, ...options, transport, store }));
  }

  /** Makes a new account with its home on a relay. */
  async person(home: RelayName, options: Partial<ClientOptions> = {}): Promise<Account> {
    return await (await this.client(options)).setUp({ relayId: this.relayId(home) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/** Starts relays before the tests of the file and stops them after them. */
export function relaysWithClients(): RelaysWithClients {
  const world = new RelaysWithClients();
  beforeAll(() => world.start());
  afterAll(() => world[Symbol.asyncDispose]());
  return world;
}
