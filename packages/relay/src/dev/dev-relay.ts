import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { listenAddress } from '../config/addresses.ts';
import type { PartialConfig } from '../config/index.ts';
import { makeFolder } from '../make-folder.ts';
import { Relay } from '../relay.ts';
import type { StorageFaults } from '../storage/types.ts';
import type { MovableClock } from './offset-clock.ts';

export interface DevRelayParts {
  readonly clock: MovableClock;
  readonly log?: Logger;
  readonly faults?: StorageFaults;
}

/** One relay of a {@link DevNetwork}: it can be stopped and started, and its clock can be moved. */
export class DevRelay implements AsyncDisposable {
  readonly name: string;
  /** The relay's data folder. */
  readonly folder: string;
  readonly clock: MovableClock;
  readonly #config: PartialConfig & { readonly data: string };
  readonly #parts: DevRelayParts;
  #relay: Relay | undefined;
  /** Starts and stops run one after another. */
  #last: Promise<unknown> = Promise.resolve();
  #isDisposed = false;

  /** @param config of the relay; `listen` with port 0 is a port that stays the same from then on */
  constructor(
    name: string,
    config: PartialConfig & { readonly data: string },
    parts: DevRelayParts,
  ) {
    this.name = name;
    this.folder = config.data;
    this.clock = parts.clock;
    this.#config = config;
    this.#parts = parts;
  }

  get isRunning(): boolean {
    return this.#relay !== undefined;
  }

  /**
   * The running relay.
   * @throws Error if it is stopped
   */
  get server(): Relay {
    if (this.#relay === undefined) throw new Error(`relay ${this.name} is stopped: start it first`);
    return this.#relay;
  }

  /**
   * Starts the relay on its keys, its database and its ports; does nothing if it runs.
   * @throws Error with the relay's name
   */
  start(): Promise<void> {
    return this.#inOrder(async () => {
      if (this.#isDisposed) throw new Error(`relay ${this.name} is stopped for good`);
      if (this.#relay !== undefined) return;
      const ports = await this.#readPorts();
      try {
        this.#relay = await Relay.start(this.#configWith(ports), this.#parts);
      } catch (error) {
        throw new Error(`relay ${this.name}: ${this.#reasonOf(error)}`, { cause: error });
      }
      const https = Number(new URL(this.#relay.https[0] as string).port);
      const peer = this.#relay.peerPort ?? ports?.peer;
      if (ports?.https !== https || ports.peer !== peer) await this.#writePorts({ https, peer });
    });
  }

  /** Stops the relay as SIGTERM does; does nothing if it is stopped. */
  stop(): Promise<void> {
    return this.#inOrder(async () => {
      const relay = this.#relay;
      this.#relay = undefined;
      await relay?.[Symbol.asyncDispose]();
    });
  }

  /** Stops and starts the relay on the same data and port. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Moves the relay's clock, and runs the jobs whose deadlines have passed by that. */
  moveClock(seconds: number): void {
    this.clock.advance(seconds);
    this.#relay?.wakeJobs();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await this.stop();
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const result = this.#last.then(work);
    // A failure belongs to its caller alone.
    this.#last = result.catch(() => {});
    return result;
  }

  #configWith(ports: Ports | undefined): PartialConfig {
    const { listen = '127.0.0.1:0', federation } = this.#config;
    const { listen: peer = '127.0.0.1:0' } = federation ?? {};
    return {
      ...this.#config,
      listen: withPort(listen, ports?.https),
      federation: { ...federation, listen: withPort(peer, ports?.peer) },
    };
  }

  #reasonOf(error: unknown): string {
    const { message, code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE') return message;
    const { listen = '127.0.0.1:0' } = this.#config;
    const advice = listenAddress({ listen }).port === 0 ? `, or remove ${this.#portsFile}` : '';
    return `${message}; stop the process that uses the port${advice}`;
  }

  get #portsFile(): string {
    return join(this.folder, 'ports.json');
  }

  async #readPorts(): Promise<Ports | undefined> {
    let text: string;
    try {
      text = await readFile(this.#portsFile, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    const ports: unknown = parsed(text);
    if (isPorts(ports)) return ports;
    throw new Error(
      `${this.#portsFile}: expected {"https": <port>, "peer": <port>}; remove the file`,
    );
  }

  async #writePorts(ports: Ports): Promise<void> {
    makeFolder(this.folder);
    await writeFile(this.#portsFile, `${JSON.stringify(ports)}\n`);
  }
}

/** The ports that the system chose for a relay at its first start. */
interface Ports {
  readonly https: number;
  /** For other relays. */
  readonly peer?: number | undefined;
}

/** Replaces port 0 by the port of an earlier start. */
function withPort(listen: string, port: number | undefined): string {
  return port === undefined ? listen : listen.replace(/:0$/, `:${port}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isPorts(value: unknown): value is Ports {
  const { https, peer } = (value ?? {}) as Partial<Ports>;
  return isPort(https) && (peer === undefined || isPort(peer));
}

function isPort(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) <= 65_535;
}
