/** The seat of a relay: the kit's own relays, which the relay under test finds in its registry. */
import type { Network, RelayDescriptor, RelayEntry } from '@posthouse/protocol';
import { DescriptorServer, type ServerOptions } from './descriptor-server.ts';
import { RegistryFile } from './registry-file.ts';
import { RelaySeat, type SeatOptions } from './relay-seat.ts';

export interface RelaySeatsOptions extends ServerOptions {
  readonly network: Network;
  /** Path of the registry file that the relay under test reads too. */
  readonly registry: string;
  /** How often the relay under test reads its registry, in seconds; absent if unknown. */
  readonly registryRefresh?: number;
  /** How often it publishes the routes of its accounts again, in seconds; absent if unknown. */
  readonly republication?: number;
}

/** As many as a relay waits for, if it waits for a fixed number of replicas of a few. */
const residents = 3;

/** More than a bucket of 20 has, so that a relay has to choose which relays it asks and names. */
const crowd = 22;

/**
 * Makes relays of the kit, as many as the checks need: a relay that misbehaved in one check must not
 * be refused in the next.
 *
 * @example
 * await using seats = await RelaySeats.open({ network, registry, host: '127.0.0.1', certificate, key });
 */
export class RelaySeats implements AsyncDisposable {
  readonly registryRefresh: number | undefined;
  readonly republication: number | undefined;
  readonly #options: RelaySeatsOptions;
  readonly #registry: RegistryFile;
  /** The IDs of all relays of the kit. */
  readonly #own = new Set<string>();
  readonly #server: DescriptorServer;
  #residents: Promise<readonly RelaySeat[]> | undefined;
  #crowd: Promise<readonly RelaySeat[]> | undefined;
  #next = 1;

  private constructor(options: RelaySeatsOptions, server: DescriptorServer) {
    this.registryRefresh = options.registryRefresh;
    this.republication = options.republication;
    this.#options = options;
    this.#registry = new RegistryFile(options.registry);
    this.#server = server;
  }

  /** @throws Error if the certificate is malformed, or the host is not of this machine */
  static async open(options: RelaySeatsOptions): Promise<RelaySeats> {
    return new RelaySeats(options, await DescriptorServer.start(options));
  }

  /**
   * Makes a relay with new keys, listens for others and enters it into the registry.
   *
   * @param target descriptor of the relay under test
   */
  async take(target: RelayDescriptor, options: SeatOptions = {}): Promise<RelaySeat> {
    await this.residents(target);
    return await this.#open(target, options);
  }

  /**
   * Returns the relays that are in the registry for the whole run. They store what they are sent:
   * whatever the relays of a check do, a route that a client publishes finds its replicas
   * (07 §B12).
   *
   * @param target descriptor of the relay under test
   */
  async residents(target: RelayDescriptor): Promise<readonly RelaySeat[]> {
    this.#residents ??= Promise.all(
      Array.from({ length: residents }, () => this.#open(target, {})),
    );
    return await this.#residents;
  }

  /**
   * Returns the residents, and so many relays more that the relay under test has to choose among
   * them; from the first call on they are in the registry too. All are connected with it.
   */
  async crowd(target: RelayDescriptor): Promise<readonly RelaySeat[]> {
    this.#crowd ??= this.#openConnected(target);
    return [...(await this.residents(target)), ...(await this.#crowd)];
  }

  /** Returns the relays that {@link residents} and {@link crowd} have opened so far. */
  async lasting(target: RelayDescriptor): Promise<readonly RelaySeat[]> {
    return this.#crowd === undefined ? await this.residents(target) : await this.crowd(target);
  }

  async #openConnected(target: RelayDescriptor): Promise<readonly RelaySeat[]> {
    const opened = await Promise.all(Array.from({ length: crowd }, () => this.#open(target, {})));
    const all = [...(await this.residents(target)), ...opened];
    await Promise.all(all.map((relay) => relay.connect()));
    return opened;
  }

  async #open(target: RelayDescriptor, options: SeatOptions): Promise<RelaySeat> {
    const name = `relay-${this.#next}`;
    this.#next += 1;
    const { network, host } = this.#options;
    const parts = { network, host, name, target, server: this.#server, registry: this.#registry };
    const seat = await RelaySeat.open(parts, options);
    this.#own.add(seat.relayId);
    return seat;
  }

  /** Returns how many relays the registry lists as active, without the kit's and one more. */
  async strangers(target: RelayDescriptor): Promise<number> {
    const active = await this.#registry.activeRelays();
    return active.filter((id) => id !== target.relay_id && !this.#own.has(id)).length;
  }

  /** Suspends the relay under test in the registry, until the result is disposed of. */
  async suspend(entry: RelayEntry): Promise<AsyncDisposable> {
    await this.#registry.setStatus(entry, 'suspended');
    return { [Symbol.asyncDispose]: () => this.#registry.list(entry) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const opened of [this.#residents, this.#crowd]) {
      const relays = (await opened?.catch(() => [])) ?? [];
      await Promise.all(relays.map((relay) => relay[Symbol.asyncDispose]()));
    }
    await this.#server[Symbol.asyncDispose]();
  }
}
