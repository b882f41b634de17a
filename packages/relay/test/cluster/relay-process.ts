/** A relay as operators run it: a process of its own, started by the command. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { bareEnvironment } from '../support/command.ts';

const sources = new URL('../../src/main.ts', import.meta.url).pathname;

/** Milliseconds for an end in good order. */
const grace = 15_000;

export interface RelayProcessOptions {
  /** Path of the configuration file. */
  readonly config: string;
  /** Port on 127.0.0.1 to listen on; 0 takes any. */
  readonly port: number;
  /** Port on 127.0.0.1 to listen on for other relays; by default any. */
  readonly peerPort?: number | undefined;
  /** More of its environment: settings that are its own. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Path of the program; by default the sources. */
  readonly main?: string | undefined;
  /** Of Node, before the program. */
  readonly flags?: readonly string[] | undefined;
}

export class RelayProcess implements AsyncDisposable {
  /** HTTPS base address that clients are told. */
  readonly base: string;
  readonly port: number;
  /** 0 if the system chose one. */
  readonly peerPort: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(
    child: ChildProcess,
    facts: Pick<RelayProcess, 'base' | 'port' | 'peerPort'>,
  ) {
    this.#child = child;
    this.#ended = once(child, 'exit');
    this.base = facts.base;
    this.port = facts.port;
    this.peerPort = facts.peerPort;
  }

  /** Starts one and waits until it answers calls. What it says otherwise goes to `hear`. */
  static async start(
    { config, port, peerPort = 0, env: own, flags = [], main = sources }: RelayProcessOptions,
    hear: (line: string) => void,
  ): Promise<RelayProcess> {
    const listen = { POSTHOUSE_FEDERATION_LISTEN: `127.0.0.1:${peerPort}` };
    const env = { ...bareEnvironment(), ...listen, ...own };
    const child = spawn(
      process.execPath,
      [...flags, main, 'serve', '--config', config, '--listen', `127.0.0.1:${port}`],
      { stdio: ['ignore', 'pipe', 'pipe'], env },
    );
    // Nothing outlives this process, however it ends.
    const end = () => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    createInterface({ input: child.stderr }).on('line', hear);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(line);
      else hear(line);
    });
    child.once('exit', (code) => reject(new Error(`the relay ended with ${code}, never ready`)));
    const [, base = ''] = (await promise).split(' ');
    return new RelayProcess(child, { base, port, peerPort });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Ends it in the middle of whatever it does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Asks it to end; it answers what is under way first. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGTERM');
    }
    const tooLate = setTimeout(() => this.#child.kill('SIGKILL'), grace);
    await this.#ended;
    clearTimeout(tooLate);
  }
}
