/** Runs a program of the user for one message. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Milliseconds between the signals TERM and KILL. */
const killDelay = 5_000;

export interface ProgramRun {
  readonly program: string;
  readonly args: readonly string[];
  /** Whether a shell reads `program` as a command line, with `args` as its parameters. */
  readonly isShell: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** Text on standard input. */
  readonly input: string;
  /** Milliseconds until it is ended. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

function killGroup({ pid }: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}

/**
 * Runs a program to its end. Its output goes to standard error.
 * @returns why it failed; `undefined` if it ended with status 0
 */
export async function runProgram(run: ProgramRun): Promise<string | undefined> {
  const { program, args, isShell, env, input, timeout } = run;
  const [file, parameters] = isShell
    ? ['/bin/sh', ['-c', program, 'courier', ...args]]
    : [program, args];
  // A group of its own, so that what it starts can be ended with it.
  const child = spawn(file, parameters, { env, stdio: ['pipe', 2, 2], detached: true });
  const timer = AbortSignal.timeout(timeout);
  const ending = AbortSignal.any([run.signal, timer]);
  let killing: NodeJS.Timeout | undefined;
  const end = () => {
    killGroup(child, 'SIGTERM');
    killing = setTimeout(() => killGroup(child, 'SIGKILL'), killDelay);
  };
  ending.addEventListener('abort', end, { once: true });
  // A program need not read its input.
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  try {
    const [status, signal] = (await once(child, 'close')) as [number | null, string | null];
    if (status === 0) return undefined;
    if (timer.aborted) return `ended after ${timeout / 1000} seconds`;
    return status === null ? `ended by ${signal}` : `exit status ${status}`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    clearTimeout(killing);
    // What the program left in the background may ignore TERM.
    if (ending.aborted) killGroup(child, 'SIGKILL');
    ending.removeEventListener('abort', end);
  }
}
