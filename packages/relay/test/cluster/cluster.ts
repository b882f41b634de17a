/** Several relay processes at one address, with their servers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadTarget, type Target } from '@posthouse/conformance';
import type { PartialConfig } from '../../src/config/index.ts';
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

  /** Starts a killed process again. */
  async revive(index: number): Promise<void> {
    const relay = await startRelay(this.#config, { index, warnings: this.#warnings });
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
}

interface Running {
  readonly folder: string;
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
  { processes, limits = {} }: ClusterOptions,
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
  const settings = {
    dev: true,
    data: folder,
    log: 'warn',
    public: {
      https: [`https://127.0.0.1:${balancer.port}/svc/v1`],
      peer: `/ip4/127.0.0.1/tcp/${peers.port}`,
    },
    storage: { engine: 'postgres', url: await postgres.createDatabase() },
    bus: { nats: nats.url },
    limits,
  };
  writeFileSync(config, JSON.stringify(settings));
  const warnings: string[] = [];
  const relays: RelayProcess[] = [];
  // The first one makes the keys that all of them use.
  for (let index = 0; index < processes; index += 1) {
    relays.push(parts.use(await startRelay(config, { index, warnings })));
  }
  balancer.backends = relays.map(({ port }) => port);
  peers.backends = relays.map(({ peerPort }) => peerPort);
  return { folder, postgres, nats, balancer, peers, config, warnings, relays };
}

async function startRelay(
  config: string,
  { index, warnings }: { readonly index: number; readonly warnings: string[] },
): Promise<RelayProcess> {
  const options = { config, port: await freePort(), peerPort: await freePort() };
  return await RelayProcess.start(options, (line) => void warnings.push(`${index}: ${line}`));
}
