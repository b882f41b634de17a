/** Several whole relays that federate: real sockets and TLS, one registry file, one authority. */
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { PartialConfig } from '../../src/config/index.ts';
import { defaultLimits } from '../../src/limits.ts';
import { devAuthority } from '../../src/tls/dev-ca.ts';
import { temporaryFolder } from './folder.ts';
import { ServedRelay } from './served-relay.ts';

/** For what needs no time of the relays' clocks, on a busy machine. */
export const patience = { timeout: 20_000, interval: 5 };

/** Limits of a relay that is dialled from one address only, that of loopback. */
export const unlimitedHandshakes = {
  peerHandshakesPerAddress: 1_000,
  peerHandshakeRate: 1e6,
  peerHandshakeBurst: 1e6,
};

/**
 * Connections of loopback all have one address. Tests move clocks by seconds while relays ask each
 * other, which must not end the questions.
 */
export const generousPeers = {
  ...unlimitedHandshakes,
  dhtQuestionTimeout: defaultLimits.dhtLookupTimeout,
  federationAddressLookupRate: 1e6,
};

/**
 * @example
 * await using network = await ServedNetwork.start(2);
 * const [a, b] = network.pair;
 */
export class ServedNetwork implements AsyncDisposable {
  readonly relays: readonly ServedRelay[];
  /** Path of the registry file that all relays read. */
  readonly registryFile: string;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    relays: readonly ServedRelay[],
    registryFile: string,
    parts: AsyncDisposableStack,
  ) {
    this.relays = relays;
    this.registryFile = registryFile;
    this.#parts = parts;
  }

  /**
   * Starts relays one after another, each with these settings, or with those of its own, and waits
   * until all are connected.
   */
  static async start(
    count: number,
    config: PartialConfig | ((index: number) => PartialConfig) = {},
  ): Promise<ServedNetwork> {
    await using parts = new AsyncDisposableStack();
    const { path } = parts.use(temporaryFolder());
    const authority = join(path, 'tls');
    const ca = await devAuthority(authority, systemClock.now());
    const registry = join(path, 'registry.json');
    const relays: ServedRelay[] = [];
    for (let index = 0; index < count; index += 1) {
      const own = typeof config === 'function' ? config(index) : config;
      const { limits, federation, ...others } = own;
      const settings = {
        registry,
        tls: { authority },
        federation: { ca, ...federation },
        limits: { ...generousPeers, ...limits },
        ...others,
      };
      relays.push(parts.use(await ServedRelay.start(settings)));
    }
    const network = new ServedNetwork(relays, registry, parts.move());
    await network.connected();
    return network;
  }

  /** The first two relays. */
  get pair(): readonly [ServedRelay, ServedRelay] {
    const [first, second] = this.relays;
    if (first === undefined || second === undefined) throw new Error('there are not two relays');
    return [first, second];
  }

  /** Waits until every relay has a connection with every other one that runs. */
  async connected(relays: readonly ServedRelay[] = this.relays): Promise<void> {
    await vi.waitFor(() => {
      for (const { server } of relays) {
        const connected = server.context.metrics.value('peers', { state: 'connected' });
        expect(connected).toBe(relays.length - 1);
      }
    }, patience);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
