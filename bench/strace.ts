/** Looks at what a process asks of the system, with `strace`, which attaches to it while it runs. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Why nothing can be traced; `undefined` if it can. */
export const withoutStrace =
  spawnSync('strace', ['--version']).error === undefined ? undefined : 'strace is not installed';

export interface StraceOptions {
  /** Names of the calls. */
  readonly calls: readonly string[];
  /** More options: `-c` counts them, `-y` names files. */
  readonly options: readonly string[];
  /** Path of the file for what it writes. */
  readonly file: string;
}

/** Calls of the system by all threads of a process. */
export class Strace {
  readonly #child: ChildProcess;
  readonly #file: string;

  private constructor(child: ChildProcess, file: string) {
    this.#child = child;
    this.#file = file;
  }

  /** Resolves when each call is seen. */
  static async attach(pid: number, { calls, options, file }: StraceOptions): Promise<Strace> {
    const all = ['-f', ...options, '-e', `trace=${calls.join(',')}`, '-e', 'signal=none'];
    const child = spawn('strace', [...all, '-o', file, '-p', String(pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const lines = createInterface({ input: child.stderr as NonNullable<typeof child.stderr> });
    const attached = once(lines, 'line');
    const ended = once(child, 'exit').then(() => ['ended']);
    const [line] = (await Promise.race([attached, ended])) as [string];
    if (!line.includes('attached')) throw new Error(`strace does not attach: ${line}`);
    return new Strace(child, file);
  }

  /** Detaches and returns what it wrote. */
  async detach(): Promise<string> {
    this.#child.kill('SIGINT');
    await once(this.#child, 'exit');
    return readFileSync(this.#file, 'utf8');
  }
}
