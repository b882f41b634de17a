/** Relays as processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { print } from './output.ts';

export const root = dirname(dirname(import.meta.dirname));
const relayMain = join(root, 'packages/relay/src/main.ts');

/** Time limit of a step, milliseconds. */
export const stepTimeout = 60_000;

export function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve(child.exitCode);
  }
  return new Promise((resolve) => child.once('exit', resolve));
}

/** Finds a free port, so that the relay can restart at the same address. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Runs `posthouse serve --dev` as a process of its own. */
export class Relay {
  readonly folder: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(folder: string, port: number) {
    this.folder = folder;
    this.#port = port;
  }

  async start(): Promise<void> {
    const child = spawn(
      process.execPath,
      [relayMain, 'serve', '--dev', '--data', this.folder, '--listen', `127.0.0.1:${this.#port}`],
      { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, POSTHOUSE_LOG: 'error' } },
    );
    this.#child = child;
    const [ready = ''] = await readyLines(child, 1);
    print(`  relay: ${ready.split(' ').slice(0, 4).join(' ')}`);
  }

  /** Kills the relay as a power cut would: nothing is flushed. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    if (this.#child !== undefined) await exitOf(this.#child);
  }
}

/** Runs `posthouse dev`: several relays of one network in one process of their own. */
export class DevRelays {
  readonly folder: string;
  #child: ChildProcess | undefined;

  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Starts the relays.
   * @returns their HTTPS addresses, in the order of their names
   */
  async start(relays: number): Promise<string[]> {
    const options = ['--relays', String(relays), '--data', this.folder, '--log', 'error'];
    // What it says for people is not shown; its log is.
    const child = spawn(process.execPath, [relayMain, 'dev', ...options], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.startsWith('{')) print(`    ${line}`);
    });
    const lines = await readyLines(child, relays);
    for (const line of lines) print(`  relay ${line.split(' ')[5]}: ${line.split(' ')[1]}`);
    return lines.map((line) => line.split(' ')[1] as string);
  }

  /** Enters one line, and waits until it is carried out. */
  async enter(line: `stop ${string}` | `start ${string}`): Promise<void> {
    const child = this.#child;
    if (child === undefined) throw new Error('the relays do not run');
    const [verb, name] = line.split(' ');
    const answer = verb === 'stop' ? child.stderr : child.stdout;
    const expected = verb === 'stop' ? `relay ${name} is stopped` : 'ready ';
    const lines = createInterface({ input: answer as NodeJS.ReadableStream });
    const done = new Promise<void>((resolve, reject) => {
      lines.on('line', (text) => text.startsWith(expected) && resolve());
      child.once('exit', (code) => reject(new Error(`the relays exited with ${code}`)));
    });
    child.stdin?.write(`${line}\n`);
    await done;
    lines.close();
    print(`  ${line}`);
  }

  async stop(): Promise<void> {
    this.#child?.kill('SIGTERM');
    if (this.#child !== undefined) await exitOf(this.#child);
  }
}

/** Reads the `ready` lines that a process prints; fails if it exits before, or takes too long. */
async function readyLines(child: ChildProcess, count: number): Promise<string[]> {
  const lines: string[] = [];
  const input = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  await new Promise<void>((resolve, reject) => {
    input.on('line', (line) => {
      lines.push(line);
      if (lines.length === count) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the relay exited with ${code}`)));
    AbortSignal.timeout(stepTimeout).addEventListener('abort', () =>
      reject(new Error('the relay printed no ready line in time')),
    );
  });
  return lines;
}
