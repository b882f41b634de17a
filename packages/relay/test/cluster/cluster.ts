/** Several relay processes at one address, with their servers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadTarget, type Target } from '@posthouse/conformance';
import type { PartialConfig } from '../../src/config/index.ts';
import { TcpProxy } from '../nats/tcp-proxy.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestNats } from '../support/nats.ts';
import { freePort } from '../support/ports.ts';
import { TestPostgres } from '../support/postgres.ts';
import { Balancer } from './balancer.ts';
import { RelayProcess } from './relay-process.ts';

/**
 * @example
 * await using cluster = await Cluster.start({ processes: 3 });
 * cluster.target.baseUrl; // the balancer's address
 * await cluster.kill(0);
 * await cluster.revive(0);
 */
export class Cluster implements AsyncDisposable {
  readonly postgres: TestPostgres;
  readonly nats: TestNats;
  readonly balancer: Balancer;
  /** Of connections of other relays. */
  readonly peers: Balancer;
  /** The folder of all processes; with the registry file and the authority of certificates. */
  readonly folder: string;
  readonly target: Target;
  /** Each process's own ways to the servers, if the cluster was started with them. */
  readonly ways: readonly Ways[];
  /** Warnings and errors that the relays logged. */
  readonly warnings: readonly string[];
  readonly #parts: AsyncDisposableStack;
  readonly #config: string;
  readonly #warnings: string[];
  readonly #relays: RelayProcess[];

  private constructor(parts: AsyncDisposableStack, running: Running & { readonly target: Target }) {
    this.#parts = parts;
    this.postgres = running.postgres;
    this.nats = running.nats;
    this.target = running.target;
    this.warnings = running.warnings;
    this.balancer = running.balancer;
    this.peers = running.peers;
    this.folder = running.folder;
    this.ways = running.ways;
    this.#config = running.config;
    this.#warnings = running.warnings;
    this.#relays = running.relays;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    await using parts = new AsyncDisposableStack();
    const running = await startParts(parts, options);
    const { folder, balancer } = running;
    const target = await loadTarget({
      relay: `https://127.0.0.1:${balancer.port}/svc/v1`,
      registry: join(folder, 'registry.json'),
      ca: join(folder, 'tls', 'ca.pem'),
    });
    return new Cluster(parts.move(), { ...running, target });
  }

  /** Ports of the processes themselves, past the balancer. */
  get ports(): readonly number[] {
    return this.#relays.map(({ port }) => port);
  }

  get pids(): readonly number[] {
    return this.#relays.map(({ pid }) => pid);
  }

  /** Ends a process with SIGKILL. */
  async kill(index: number): Promise<void> {
    await this.#relays[index]?.kill();
  }

  /** Stops a process in the middle of whatever it does, until {@link resume}. */
  pause(index: number): void {
    process.kill(this.pids[index] as number, 'SIGSTOP');
  }

  resume(index: number): void {
    process.kill(this.pids[index] as number, 'SIGCONT');
  }

  /** Starts a killed process again. */
  async revive(index: number): Promise<void> {
    const way = this.ways[index];
    const relay = await startRelay(this.#config, { index, warnings: this.#warnings, way });
    this.#relays[index] = relay;
    this.balancer.backends = this.ports;
    this.peers.backends = this.#relays.map(({ peerPort }) => peerPort);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#relays.map((relay) => relay[Symbol.asyncDispose]()));
    await this.#parts.disposeAsync();
  }
}

export interface ClusterOptions {
  readonly processes: number;
  readonly limits?: PartialConfig['limits'];
  /** Whether each process reaches the servers by proxies of its own. */
  readonly hasWays?: boolean;
}

/** A process's ways to the servers, which can be cut for it alone. */
export interface Ways {
  readonly storage: CuttingProxy;
  readonly bus: TcpProxy;
}

interface Running {
  readonly folder: string;
  readonly ways: readonly Ways[];
  readonly postgres: TestPostgres;
  readonly nats: TestNats;
  readonly balancer: Balancer;
  readonly peers: Balancer;
  readonly config: string;
  readonly warnings: string[];
  readonly relays: RelayProcess[];
}

async function startParts(
  parts: AsyncDisposableStack,
  { processes, limits = {}, hasWays = false }: ClusterOptions,
): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-cluster-'));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const [postgres, nats, balancer, peers] = await Promise.all([
    TestPostgres.start({ durable: true }).then((server) => parts.use(server)),
    TestNats.start().then((server) => parts.use(server)),
    Balancer.start().then((server) => parts.use(server)),
    Balancer.start().then((server) => parts.use(server)),
  ]);
  const config = join(folder, 'config.json');
  const url = await postgres.createDatabase();
  const settings = {
    dev: true,
    data: folder,
    log: 'warn',
    public: {
      https: [`https://127.0.0.1:${balancer.port}/svc/v1`],
      peer: `/ip4/127.0.0.1/tcp/${peers.port}`,
    },
    storage: { engine: 'postgres', url },
    bus: { nats: nats.url },
    limits,
  };
  writeFileSync(config, JSON.stringify(settings));
  const warnings: string[] = [];
  const relays: RelayProcess[] = [];
  const ways: Ways[] = [];
  // The first one makes the keys that all of them use.
  for (let index = 0; index < processes; index += 1) {
    if (hasWays) {
      const storage = parts.use(await CuttingProxy.start(url));
      ways.push({ storage, bus: parts.use(await TcpProxy.start(nats.url)) });
    }
    relays.push(parts.use(await startRelay(config, { index, warnings, way: ways[index] })));
  }
  balancer.backends = relays.map(({ port }) => port);
  peers.backends = relays.map(({ peerPort }) => peerPort);
  return { folder, ways, postgres, nats, balancer, peers, config, warnings, relays };
}

async function startRelay(
  config: string,
  {
    index,
    warnings,
    way,
  }: {
    readonly index: number;
    readonly warnings: string[];
    readonly way: Ways | undefined;
  },
): Promise<RelayProcess> {
  const env = way && {
    POSTHOUSE_STORAGE_URL: way.storage.url,
    POSTHOUSE_BUS_NATS: way.bus.url,
  };
  const options = { config, port: await freePort(), peerPort: await freePort(), env };
  return await RelayProcess.start(options, (line) => void warnings.push(`${index}: ${line}`));
}
