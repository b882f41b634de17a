/** Servers of a bench, each a process of its own whose CPU time can be asked. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bareEnvironment } from '../packages/relay/test/support/command.ts';
import { freePort } from '../packages/relay/test/support/ports.ts';
import type { LoadTarget } from './load.ts';
import type { CpuTimes } from './probe.ts';
import { writeConfig } from './support.ts';

/** The checkout that this file is part of. */
export const ownCheckout = new URL('..', import.meta.url).pathname;

const probe = new URL('probe.ts', import.meta.url).href;

/** Milliseconds for an end in good order. */
const grace = 15_000;

interface ProcessOptions {
  readonly flags?: readonly string[];
  readonly isProbed?: boolean;
}

/** A program of Node that prints a line beginning with `ready` once it serves. */
export class MeasuredProcess implements AsyncDisposable {
  readonly pid: number;
  /** Words of the line that it printed, after `ready`. */
  readonly facts: readonly string[];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(child: ChildProcess, facts: readonly string[]) {
    this.#child = child;
    this.pid = child.pid as number;
    this.facts = facts;
    this.#ended = once(child, 'exit');
  }

  /**
   * @param options.flags of Node, before the program
   * @param options.isProbed `false` leaves out the probe, which takes memory and time to load:
   *   {@link cpuTimes} is not there then
   */
  static async start(
    program: readonly string[],
    { flags = [], isProbed = true }: ProcessOptions = {},
  ): Promise<MeasuredProcess> {
    const env = { ...bareEnvironment(), POSTHOUSE_FEDERATION_LISTEN: '127.0.0.1:0' };
    const probes = isProbed ? [`--import=${probe}`] : [];
    const child = spawn(process.execPath, [...probes, ...flags, ...program], {
      stdio: ['ignore', 'pipe', 'inherit', ...(isProbed ? (['ipc'] as const) : [])],
      env,
    });
    // Nothing outlives this process, however it ends.
    const end = () => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    if (child.stdout !== null) createInterface({ input: child.stdout }).once('line', resolve);
    child.once('exit', (code) =>
      reject(new Error(`${program[0]} ended with ${code}, never ready`)),
    );
    const [, ...facts] = (await promise).split(' ');
    return new MeasuredProcess(child, facts);
  }

  /** Reads the CPU time used so far. */
  async cpuTimes(): Promise<CpuTimes> {
    const answer = once(this.#child, 'message') as Promise<[CpuTimes]>;
    this.#child.send('cpu times');
    return (await answer)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM');
    const tooLate = setTimeout(() => this.#child.kill('SIGKILL'), grace);
    await this.#ended;
    clearTimeout(tooLate);
  }
}

/** A server under load: one process, or several on one database. */
export interface MeasuredServer {
  readonly target: LoadTarget;
  readonly processes: readonly MeasuredProcess[];
  /** Path of its SQLite database, if it has one. */
  readonly database: string;
}

export interface RelayOptions extends ProcessOptions {
  /** How tables name it. */
  readonly name: string;
  /** Path of the relay's entry point; by default of this checkout's. */
  readonly main?: string | undefined;
  readonly settings?: Readonly<Record<string, unknown>> & { readonly limits?: object };
  /** Number of processes, 1 by default; several need PostgreSQL and NATS in the settings. */
  readonly count?: number;
}

/** Path of the relay's entry point in a checkout. */
export const mainOf = (checkout: string) => join(checkout, 'packages/relay/src/main.ts');

/** Starts a relay on a data folder; its processes end with `parts`. */
export async function startRelay(
  parts: AsyncDisposableStack,
  folder: string,
  options: RelayOptions,
): Promise<MeasuredServer> {
  const { name, main = mainOf(ownCheckout), settings = {}, count = 1 } = options;
  mkdirSync(folder, { recursive: true });
  const ports: number[] = [];
  for (let started = 0; started < count; started += 1) ports.push(await freePort());
  const base = `https://127.0.0.1:${ports[0]}/svc/v1`;
  // All processes announce the first one's address; each port leads to the same relay.
  const named = { https: [base], peer: '/ip4/127.0.0.1/tcp/4201' };
  const config = writeConfig(folder, { public: named, ...settings });
  const processes: MeasuredProcess[] = [];
  for (const port of ports) {
    const program = [main, 'serve', '--config', config, '--listen', `127.0.0.1:${port}`];
    processes.push(parts.use(await MeasuredProcess.start(program, options)));
  }
  const relay = { base, registry: join(folder, 'registry.json') };
  const sockets = ports.map((port) => `wss://127.0.0.1:${port}/svc/v1`);
  const target = { name, sockets, ca: join(folder, 'tls', 'ca.pem'), relay };
  return { processes, target, database: join(folder, 'relay.sqlite') };
}

/** Starts the floor with the certificate of a relay, whose data folder is given. */
export async function startFloor(
  parts: AsyncDisposableStack,
  folder: string,
  relayFolder: string,
): Promise<MeasuredServer> {
  mkdirSync(folder, { recursive: true });
  for (const file of ['server.pem', 'server.key']) {
    copyFileSync(join(relayFolder, 'tls', file), join(folder, file));
  }
  const program = [new URL('floor.ts', import.meta.url).pathname, folder];
  const process = parts.use(await MeasuredProcess.start(program));
  const sockets = [`wss://127.0.0.1:${process.facts[0]}`];
  const ca = join(relayFolder, 'tls', 'ca.pem');
  const target = { name: 'floor', sockets, ca };
  return { processes: [process], target, database: join(folder, 'floor.sqlite') };
}
