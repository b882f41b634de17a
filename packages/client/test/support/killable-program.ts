/** A process that follows an account, and can be killed at any moment. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { network } from './relay-with-clients.ts';

/** What the process says of an event. */
interface Line {
  readonly ready?: true;
  readonly text?: string;
  readonly connection?: string;
  readonly id?: string;
  readonly status?: string;
}

export class KillableProgram {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#closed = once(child, 'close');
    const { stdout } = child;
    if (stdout === null) throw new TypeError('started without its output');
    createInterface(stdout).on('line', (line) => this.lines.push(JSON.parse(line)));
  }

  /** @param options.relayFolder of its registry and certificate authority */
  static start(options: { readonly relayFolder: string; readonly storePath: string }) {
    const program = join(import.meta.dirname, 'following-program.ts');
    const given = [network.context, options.relayFolder, options.storePath];
    const child = spawn(process.execPath, [program, ...given], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return new KillableProgram(child);
  }

  get isReady(): boolean {
    return this.lines.some(({ ready }) => ready);
  }

  get texts(): string[] {
    return this.lines.flatMap(({ text }) => text ?? []);
  }

  /** How often it was told that a program of the store is connected. */
  get connections(): number {
    return this.lines.filter(({ connection }) => connection === 'connected').length;
  }

  /** Statuses of messages as `ID status`, in order. */
  get statuses(): string[] {
    return this.lines.flatMap(({ id, status }) => (id === undefined ? [] : `${id} ${status}`));
  }

  /** Kills the process; resolves when all that it had written was read. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }
}
