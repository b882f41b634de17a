/** The seat of a relay: the kit's own relays, which the relay under test finds in its registry. */
import type { Network, RelayDescriptor } from '@posthouse/protocol';
import { DescriptorServer, type ServerOptions } from './descriptor-server.ts';
import { RegistryFile } from './registry-file.ts';
import { RelaySeat, type SeatOptions } from './relay-seat.ts';

export interface RelaySeatsOptions extends ServerOptions {
  readonly network: Network;
  /** Path of the registry file that the relay under test reads too. */
  readonly registry: string;
  /** How often the relay under test reads its registry, in seconds; absent if unknown. */
  readonly registryRefresh?: number;
}

/**
 * Makes relays of the kit, as many as the checks need: a relay that misbehaved in one check must not
 * be refused in the next.
 *
 * @example
 * await using seats = await RelaySeats.open({ network, registry, host: '127.0.0.1', certificate, key });
 */
export class RelaySeats implements AsyncDisposable {
  readonly registryRefresh: number | undefined;
  readonly #options: RelaySeatsOptions;
  readonly #registry: RegistryFile;
  readonly #server: DescriptorServer;
  #next = 1;

  private constructor(options: RelaySeatsOptions, server: DescriptorServer) {
    this.registryRefresh = options.registryRefresh;
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
    const name = `relay-${this.#next}`;
    this.#next += 1;
    const { network, host } = this.#options;
    const parts = { network, host, name, target, server: this.#server, registry: this.#registry };
    return await RelaySeat.open(parts, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
