/** A NATS server of the tests' own: the installed program, a port of its own on loopback. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { freePort } from './ports.ts';

/** Why tests with NATS cannot run here; `undefined` where they can. */
export const withoutNats: string | undefined =
  spawnSync('nats-server', ['--version']).error === undefined
    ? undefined
    : 'nats-server is not installed';

/**
 * @example
 * await using nats = await TestNats.start();
 * nats.url; // 'nats://127.0.0.1:49152'
 */
export class TestNats implements AsyncDisposable {
  readonly #port: number;
  readonly #options: readonly string[];
  #child: ChildProcess | undefined;

  private constructor(port: number, options: readonly string[]) {
    this.#port = port;
    this.#options = options;
  }

  /** @param options of the command line, in addition to the address */
  static async start(...options: string[]): Promise<TestNats> {
    const nats = new TestNats(await freePort(), options);
    await nats.start();
    return nats;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('nats-server does not run');
    return this.#child.pid;
  }

  /**
   * Starts it where it does not run, again at the same address after {@link stop}; resolves when it
   * takes connections.
   */
  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const address = ['-a', '127.0.0.1', '-p', String(this.#port)];
    const child = spawn('nats-server', [...address, ...this.#options], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    // It does not outlive this process, however that ends.
    const end = () => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let said = '';
    createInterface({ input: child.stderr }).on('line', (line) => {
      said = line;
      if (line.includes('Server is ready')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`nats-server ended: ${said}`)));
    await promise;
  }

  /** Ends it at once; every connection is cut. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Stops its work but for its connections, which stay open: a machine that hangs. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
