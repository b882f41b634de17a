/** The command `courier`, bundled once, and the devices that run it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { build } from 'esbuild';
import { print } from './output.ts';
import { exitOf, root, stepTimeout } from './relays.ts';

/**
 * Bundles `courier` into one file: a command that starts from its sources takes four times as long.
 * @returns the path of the file
 */
export async function bundleCourier(folder: string): Promise<string> {
  const outfile = join(folder, 'courier.mjs');
  await build({
    entryPoints: [join(root, 'packages/client/src/courier/main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Packages of the older module system call `require` for modules of Node.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  return outfile;
}

/** Milliseconds between two attempts of {@link Device.until}. */
const pollInterval = 200;

// biome-ignore lint/suspicious/noExplicitAny: each command has its own JSON.
type Answer = any;

interface CommandResult {
  readonly exit: number | null;
  readonly out: string;
  readonly error: string;
}

/** A device: runs `courier` with a folder of its own. */
export class Device {
  readonly name: string;
  readonly #courier: string;
  readonly #folder: string;

  /** @param courier path of the bundled command */
  constructor(name: string, courier: string, folder: string) {
    this.name = name;
    this.#courier = courier;
    this.#folder = folder;
  }

  start(...args: readonly string[]): ChildProcess {
    return spawn(process.execPath, [this.#courier, ...args], {
      env: { ...process.env, COURIER_HOME: this.#folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Runs a command and prints it with its output. */
  async runShown(...args: readonly string[]): Promise<CommandResult> {
    const result = await this.#run(args);
    const shown = args.map((arg) => (arg.length > 60 ? `${arg.slice(0, 24)}…` : arg)).join(' ');
    print(`  ${this.name}$ courier ${shown}`);
    for (const line of `${result.out}${result.error}`.split('\n')) {
      if (line !== '') print(`    ${line.length > 92 ? `${line.slice(0, 92)}…` : line}`);
    }
    return result;
  }

  /** Runs a command that must succeed. */
  async do(...args: readonly string[]): Promise<string> {
    const { exit, out, error } = await this.runShown(...args);
    if (exit !== 0) throw new Error(`courier ${args[0]} ended with ${exit}: ${error}`);
    return out.trim();
  }

  /** Runs a command with `--json` without printing it; for the checks. */
  async query(...args: readonly string[]): Promise<Answer> {
    const { exit, out, error } = await this.#run([...args, '--json']);
    if (exit !== 0) throw new Error(`courier ${args[0]} ended with ${exit}: ${error}`);
    return JSON.parse(out);
  }

  /**
   * Repeats a command with `--json` until its answer fits: mail between relays takes a moment.
   * @throws Error if it does not fit in time
   */
  async until(
    what: string,
    args: readonly string[],
    fits: (answer: Answer) => boolean,
  ): Promise<void> {
    const deadline = Date.now() + stepTimeout;
    while (!fits(await this.query(...args))) {
      if (Date.now() > deadline) throw new Error(`${this.name}: not in time: ${what}`);
      await setTimeout(pollInterval);
    }
    print(`  ok: ${what}`);
  }

  /** Reads the texts of its messages, in order of arrival. */
  async texts(): Promise<string[]> {
    const { messages } = await this.query('inbox');
    return messages.map((message: { text: string }) => message.text);
  }

  async #run(args: readonly string[]): Promise<CommandResult> {
    const child = this.start(...args);
    const stop = AbortSignal.timeout(stepTimeout);
    stop.addEventListener('abort', () => child.kill('SIGKILL'), { once: true });
    const [exit, out, error] = await Promise.all([
      exitOf(child),
      text(child.stdout as NodeJS.ReadableStream),
      text(child.stderr as NodeJS.ReadableStream),
    ]);
    return { exit, out, error };
  }
}

/** Runs `courier inbox --follow` and waits for its events. */
export class Follower {
  readonly #child: ChildProcess;
  readonly #events: { event: string; message?: { text: string } }[] = [];
  #wake: () => void = () => {};

  constructor(device: Device) {
    this.#child = device.start('inbox', '--follow', '--json');
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.#events.push(JSON.parse(line));
      this.#wake();
    });
  }

  /** Waits for an event that fits; drops it and the events before it. */
  async waitFor(
    what: string,
    fits: (event: { event: string; message?: { text: string } }) => boolean,
  ) {
    const deadline = AbortSignal.timeout(stepTimeout);
    for (;;) {
      const index = this.#events.findIndex(fits);
      if (index >= 0) {
        this.#events.splice(0, index + 1);
        print(`  ok: live: ${what}`);
        return;
      }
      if (this.#child.exitCode !== null) throw new Error(`courier exited before: ${what}`);
      if (deadline.aborted) throw new Error(`no such event in time: ${what}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        deadline.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    return await exitOf(this.#child);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
