/** The command `posthouse` as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { posthouseCommand } from './bundled-command.ts';

/** A command with its output so far. */
export interface Command {
  readonly child: ChildProcess;
  readonly output: { readonly text: string; readonly errors: string };
  /** The exit code or the signal. */
  readonly ended: Promise<number | string | null>;
  /** The first line it prints. */
  line(): Promise<string>;
  /** The lines it has printed, once they are so many or it has ended. */
  lines(count: number): Promise<string[]>;
}

const running = new Set<ChildProcess>();

/** Ends every command that still runs. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** Nothing of this process's environment but what a process needs to start, and to start soon. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
}

/** Starts the command, or another program of Node. */
export function posthouse(
  args: readonly string[],
  environment: Record<string, string> = {},
  {
    standardError = 'pipe',
    input = '',
    keepInputOpen = false,
    program = posthouseCommand,
  }: {
    readonly standardError?: 'pipe' | number;
    readonly input?: string;
    /** The test writes more to `child.stdin`. */
    readonly keepInputOpen?: boolean;
    /** Path of a program to be started instead. */
    readonly program?: string;
  } = {},
): Command {
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...bareEnvironment(), ...environment },
    stdio: ['pipe', 'pipe', standardError],
  });
  // A command that asks nothing may have ended before it is told.
  child.stdin?.on('error', () => {});
  child.stdin?.write(input);
  if (!keepInputOpen) child.stdin?.end();
  running.add(child);
  const output = { text: '', errors: '' };
  const lineWaiters: (() => void)[] = [];
  child.stdout?.on('data', (data) => {
    output.text += data;
    for (const wake of lineWaiters.splice(0)) wake();
  });
  child.stderr?.on('data', (data) => {
    output.errors += data;
  });
  const ended = new Promise<number | string | null>((resolve) => {
    child.on('close', (code, signal) => {
      running.delete(child);
      for (const wake of lineWaiters.splice(0)) wake();
      resolve(code ?? signal);
    });
  });
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const lines = async (count: number) => {
    for (;;) {
      const found = output.text.split('\n').slice(0, -1);
      if (found.length >= count || hasEnded) return found;
      await Promise.race([ended, new Promise<void>((wake) => lineWaiters.push(wake))]);
    }
  };
  const line = async () => {
    await lines(1);
    return output.text.split('\n', 1)[0] ?? '';
  };
  return { child, output, ended, line, lines };
}
