/** Commands that may take over two seconds: their progress, and an orderly end after Ctrl+C. */
import { Progress, type ProgressState } from '@posthouse/protocol/progress';
import { terminalJson } from '@posthouse/protocol/terminal';
import { note, print } from './terminal-output.ts';

/** What the work of a long command is given. */
interface LongWorkParts {
  /** Aborts after the first SIGINT or SIGTERM; more of them change nothing. */
  readonly signal: AbortSignal;
  readonly progress: (state: ProgressState) => void;
  /** Removes the bar, so that the command can print lines of its own. */
  readonly clear: () => void;
}

interface LongCommandOptions<T> {
  /** Prints events and the result as JSON, one object per line. */
  readonly json?: boolean | undefined;
  /** Shows progress as a bar on a terminal and nowhere else: the command prints as it goes. */
  readonly isTerminalOnly?: boolean;
  /** What is said after Ctrl+C: what is there now, and how to go on. */
  readonly stopped: string;
  readonly work: (parts: LongWorkParts) => Promise<T>;
}

/**
 * Runs the work of a command and shows its progress: as a bar if standard error is a terminal, else as
 * lines there; as events on standard output with `json`. After Ctrl+C the work ends in order, what to do
 * next is printed, and the exit status is 1.
 *
 * @returns the result; `undefined` if it was stopped
 */
export async function longCommand<T>(options: LongCommandOptions<T>): Promise<T | undefined> {
  const { json = false, isTerminalOnly = false, stopped, work } = options;
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  // Ctrl+C may arrive twice, once passed on by npm: the second must not end what the first one undoes.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  const progress = progressOf(json);
  try {
    return await work({
      signal: stopping.signal,
      progress: (state) =>
        isTerminalOnly && !process.stderr.isTTY ? undefined : progress.show(state),
      clear: () => progress.end(),
    });
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    progress.end();
    if (json) print([terminalJson({ event: 'stopped', next: stopped })]);
    else note(`stopped: ${stopped}`);
    process.exitCode = 1;
    return undefined;
  } finally {
    progress.end();
    if (!stopping.signal.aborted) {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, stop);
    }
  }
}

function progressOf(json: boolean): Progress {
  const stream = json ? process.stdout : process.stderr;
  return new Progress({
    form: json ? 'json' : stream.isTTY ? 'bar' : 'lines',
    write: (text) => void stream.write(text),
    now: () => performance.now(),
    columns: () => stream.columns,
  });
}
