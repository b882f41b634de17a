/** What several checks of one relay need, each made once. */
import { Network, type Registry, type RelayDescriptor, type RelayEntry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { nodePrimitives } from '@posthouse/protocol/node';
import { configuredDescriptor } from '../../about/configured-descriptor.ts';
import { systemClock } from '../../clock.ts';
import { type ListenAddress, listenAddress, publicAddresses } from '../../config/addresses.ts';
import type { LoadedConfig, RelayConfig } from '../../config/index.ts';
import { SignatureVerifier } from '../../crypto/verifier.ts';
import { LongWork } from '../../dispatch/long-work.ts';
import {
  AddressFilter,
  askRunningRelay,
  DescriptorFetcher,
  FileRegistry,
  openChain,
  type RunningRelayAnswer,
  readAuthority,
  registryPath,
  trusting,
} from '../../federation/index.ts';
import { relayIdentity, type SigningIdentity } from '../../keys/identity.ts';
import { loadKeys } from '../../keys/keys.ts';
import { createLog } from '../../observability/log.ts';
import { Metrics } from '../../observability/metrics.ts';
import { openAlongside } from '../../storage/open.ts';
import type { Migration, Storage } from '../../storage/types.ts';

/** Where a check finds the relay. */
export interface CheckedRelayOptions {
  /** @throws ConfigError */
  readonly load: () => LoadedConfig;
  /** Of this version. */
  readonly migrations: readonly Migration[];
}

/** What the running relay said about other relays that reach it, or why it was not asked. */
export type Reachability = RunningRelayAnswer | { readonly kind: 'alone' };

/**
 * The relay of a configuration, which may run or not, for {@link Check}. Its getters throw what is
 * wrong; a check that names others in `needs` is not run if they failed.
 */
export class CheckedRelay implements AsyncDisposable {
  readonly clock = systemClock;
  readonly verifier = new SignatureVerifier();
  /** Whether a process accepts connections at `listen`; set by the check that tried it. */
  isRunning = false;
  readonly #options: CheckedRelayOptions;
  readonly #opened = new AsyncDisposableStack();
  #loaded: LoadedConfig | undefined;
  #identity: Promise<SigningIdentity> | undefined;
  #storage: Promise<Storage> | undefined;
  #descriptor: Promise<RelayDescriptor> | undefined;
  #fetcher: Promise<DescriptorFetcher> | undefined;
  #registry: Promise<Registry> | undefined;
  #reachability: Promise<Reachability> | undefined;

  constructor(options: CheckedRelayOptions) {
    this.#options = options;
  }

  get loaded(): LoadedConfig {
    this.#loaded ??= this.#options.load();
    return this.#loaded;
  }

  get config(): RelayConfig {
    return this.loaded.config;
  }

  get limits(): RelayConfig['limits'] {
    return this.config.limits;
  }

  get network(): Network {
    const { network: context, service: word } = this.config;
    return new Network({ context, word, primitives: nodePrimitives });
  }

  get identity(): Promise<SigningIdentity> {
    this.#identity ??= loadKeys(this.config.data).then((keys) => relayIdentity(this.network, keys));
    return this.#identity;
  }

  get storage(): Promise<Storage> {
    this.#storage ??= openAlongside(this.config, this.#options.migrations).then((storage) =>
      this.#opened.use(storage),
    );
    return this.#storage;
  }

  /** The address for clients, and for other relays unless the relay is alone. */
  get listens(): { readonly clients: ListenAddress; readonly relays: ListenAddress | undefined } {
    const { federation } = this.config;
    return {
      clients: listenAddress(this.config),
      relays: federation.listen === '' ? undefined : listenAddress(federation),
    };
  }

  /** The descriptor that a relay of this configuration signs. */
  get descriptor(): Promise<RelayDescriptor> {
    this.#descriptor ??= this.#signDescriptor();
    return this.#descriptor;
  }

  /** Its first HTTPS address, which the registry must name. */
  get endpoint(): Promise<string> {
    return this.descriptor.then(({ endpoints: [first = ''] }) => first);
  }

  /** The registry file, or the contract on the chain, which is read anew. */
  get registry(): Promise<Registry> {
    this.#registry ??= this.#openRegistry();
    return this.#registry;
  }

  /** Fetches over HTTPS as other relays do. */
  get fetcher(): Promise<DescriptorFetcher> {
    const { clock, limits, filter } = this;
    this.#fetcher ??= readAuthority(this.config).then(
      (authority) => new DescriptorFetcher({ clock, limits, filter, authority }),
    );
    return this.#fetcher;
  }

  /** TLS as other relays have it. */
  get secureContext(): Promise<ReturnType<typeof trusting>> {
    return readAuthority(this.config).then(trusting);
  }

  get filter(): AddressFilter {
    return new AddressFilter(this.config.federation);
  }

  /** Other relays that the registry lists as active, at most as many as a relay remembers. */
  async otherRelays(signal: AbortSignal): Promise<RelayEntry[]> {
    const { relayId } = await this.identity;
    const others: RelayEntry[] = [];
    for await (const entry of (await this.registry).listRelays(signal)) {
      if (others.length >= this.limits.federationRegistryRelays) break;
      if (entry.relay_id !== relayId && entry.status === 'active') others.push(entry);
    }
    return others;
  }

  /** Has the running relay ask others to dial it. */
  get reachability(): Promise<Reachability> {
    this.#reachability ??= this.#askRunningRelay();
    return this.#reachability;
  }

  async #openRegistry(): Promise<Registry> {
    const { config, network, clock, limits } = this;
    const { registry } = config;
    if (typeof registry === 'string') {
      return new FileRegistry(network, registryPath({ ...config, registry }));
    }
    const observed = { log: createLog('silent'), metrics: new Metrics(), longWork: new LongWork() };
    const parts = { network, clock, limits, ...observed, parts: this.#opened };
    return await openChain(registry, config, parts);
  }

  async #askRunningRelay(): Promise<Reachability> {
    if (this.listens.relays === undefined) return { kind: 'alone' };
    return await askRunningRelay(await this.storage, this.clock.now());
  }

  async #signDescriptor(): Promise<RelayDescriptor> {
    const { config, network, clock } = this;
    const addresses = publicAddresses(network, config);
    addresses.setPort(this.listens.clients.port);
    const parts = { network, identity: await this.identity, clock, addresses };
    const text = await configuredDescriptor(config, parts).current();
    return parseJson(text) as unknown as RelayDescriptor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}
