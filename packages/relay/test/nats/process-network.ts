/** Relay A as several processes with one peer key, and relay B as one, on real sockets. */
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { PartialConfig } from '../../src/config/index.ts';
import { devAuthority } from '../../src/tls/dev-ca.ts';
import { Balancer } from '../cluster/balancer.ts';
import { temporaryFolder } from '../support/folder.ts';
import { TestNats } from '../support/nats.ts';
import { generousPeers } from '../support/served-network.ts';
import { ServedRelay } from '../support/served-relay.ts';
import { TcpProxy } from './tcp-proxy.ts';

/** For what needs no time of the relays' clocks, on a busy machine. */
export const patience = { timeout: 20_000, interval: 10 };

/**
 * Clients and relays reach A's processes past a balancer for each kind of port. The first process is
 * connected to NATS by a proxy.
 *
 * @example
 * await using network = await ProcessNetwork.start();
 * const [first, second] = network.processes;
 */
export class ProcessNetwork implements AsyncDisposable {
  readonly nats: TestNats;
  readonly proxy: TcpProxy;
  /** Of connections that other relays make. */
  readonly peers: Balancer;
  readonly processes: readonly [ServedRelay, ServedRelay];
  readonly b: ServedRelay;
  /** Path of the registry file that all read. */
  readonly registryFile: string;
  readonly #clients: Balancer;
  readonly #parts: AsyncDisposableStack;

  private constructor(parts: AsyncDisposableStack, running: Running) {
    this.#parts = parts;
    this.nats = running.nats;
    this.proxy = running.proxy;
    this.peers = running.peers;
    this.#clients = running.clients;
    this.processes = running.processes;
    this.b = running.b;
    this.registryFile = running.registryFile;
  }

  static async start(config: PartialConfig = {}): Promise<ProcessNetwork> {
    await using parts = new AsyncDisposableStack();
    const { path } = parts.use(temporaryFolder());
    const authority = join(path, 'tls');
    const ca = await devAuthority(authority, systemClock.now());
    const registryFile = join(path, 'registry.json');
    const nats = parts.use(await TestNats.start());
    const proxy = parts.use(await TcpProxy.start(nats.url));
    const clients = parts.use(await Balancer.start());
    const peers = parts.use(await Balancer.start());
    const { limits, ...others } = config;
    const settings = {
      registry: registryFile,
      tls: { authority },
      federation: { ca },
      limits: { ...generousPeers, ...limits },
      ...others,
    };
    const first = parts.use(
      await ServedRelay.start({
        ...settings,
        public: {
          https: [`https://127.0.0.1:${clients.port}/svc/v1`],
          peer: `/ip4/127.0.0.1/tcp/${peers.port}`,
        },
        bus: { nats: proxy.url },
      }),
    );
    const second = parts.use(await first.startProcess({ bus: { nats: nats.url } }));
    const b = parts.use(await ServedRelay.start(settings));
    const network = new ProcessNetwork(parts.move(), {
      ...{ nats, proxy, clients, peers, b, registryFile },
      processes: [first, second],
    });
    network.balance();
    await network.connected();
    return network;
  }

  get relays(): readonly ServedRelay[] {
    return [...this.processes, this.b];
  }

  /** The balancers choose among these processes from now on. */
  balance(processes: readonly ServedRelay[] = this.processes): void {
    this.#clients.backends = processes.map(({ port }) => port);
    this.peers.backends = processes.map(({ server }) => server.peerPort as number);
  }

  /** Waits until each process has a connection with B. */
  async connected(processes: readonly ServedRelay[] = this.processes): Promise<void> {
    const isComplete = () => processes.every(isConnected);
    // The registry is read, and a relay that failed is dialled, when the clock says so; to move it
    // ends a dial under way, which has longer each time.
    for (let timeout = 1_000; !isComplete(); timeout *= 2) {
      this.advance(61);
      const settled = vi.waitUntil(isComplete, { timeout, interval: 10 });
      await settled.catch(() => undefined);
    }
  }

  /** Moves the clocks of both relays. */
  advance(seconds: number): void {
    this.processes[0].clock.advance(seconds);
    this.b.clock.advance(seconds);
  }

  /** Waits until every process is connected to NATS, or none is. */
  async bus(is: boolean): Promise<void> {
    for (const { server } of this.processes) {
      await vi.waitFor(() => expect(server.context.bus.isConnected).toBe(is), patience);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

interface Running {
  readonly nats: TestNats;
  readonly proxy: TcpProxy;
  readonly clients: Balancer;
  readonly peers: Balancer;
  readonly processes: readonly [ServedRelay, ServedRelay];
  readonly b: ServedRelay;
  readonly registryFile: string;
}

/** Whether a process has a connection with another relay. */
export function isConnected({ server }: ServedRelay): boolean {
  return server.context.metrics.value('peers', { state: 'connected' }) > 0;
}
