import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { PolicyQuestion, RelayContext } from '../context.ts';
import { policyEnded, policyLine, policyStarted } from '../observability/policy-events.ts';
import { LinesOfMinute, readLines } from './lines.ts';

/** Characters of an answer, and of a line that the program writes for the log. */
const answerCharacters = 1_024;
/** Questions in a row without an answer in time, after which the program is ended. */
const mostMisses = 10;
/** Milliseconds until it is started again: at first, doubled each time, and at the most. */
const firstPause = 1_000;
const longestPause = 60_000;
/** Milliseconds for it to end when its input has ended. */
const endTimeout = 2_000;
/** All of its environment: where the interpreter of a script is looked for. */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin' };

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;

/** Takes an answer; `undefined` if there is none. */
type Waiting = (isAllowed: boolean | undefined) => void;

/**
 * A program that answers questions, one JSON text a line: `{ "id": 1, "ask": "group", ... }` is
 * answered by `{ "id": 1, "allow": true }`, in any order. If it ends, or writes anything else, it is
 * ended and started again, after a pause.
 */
export class PolicyProgram implements AsyncDisposable {
  readonly #command: readonly string[];
  readonly #parts: Parts;
  readonly #lines: LinesOfMinute;
  /** By the ID of the question. */
  readonly #waiting = new Map<number, Waiting>();
  #child: ChildProcessWithoutNullStreams | undefined;
  #lastId = 0;
  #misses = 0;
  /** Ends since the last answer. */
  #ends = 0;
  #retry: Disposable | undefined;
  #isOver = false;

  private constructor(command: readonly string[], parts: Parts) {
    this.#command = command;
    this.#parts = parts;
    this.#lines = new LinesOfMinute(parts.clock, parts.limits.policyLogLines);
  }

  /**
   * Starts a program.
   *
   * @param command its path and arguments
   * @throws Error if it cannot be run
   */
  static async start(command: readonly string[], parts: Parts): Promise<PolicyProgram> {
    const program = new PolicyProgram(command, parts);
    await once(program.#run(), 'spawn');
    return program;
  }

  /** Process ID, while the program runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Returns whether the program allows it; `undefined` without a valid answer in time. */
  async ask(question: PolicyQuestion): Promise<boolean | undefined> {
    const child = this.#child;
    if (child === undefined) return undefined;
    const { clock, limits } = this.#parts;
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve } = Promise.withResolvers<boolean | undefined>();
    this.#waiting.set(id, resolve);
    using _timer = clock.after(limits.policyTimeout, () => this.#miss(child, id));
    child.stdin.write(`${asciiJson({ id, ...question })}\n`);
    return await promise;
  }

  /** Ends the program: its input first, then, if that does not help, the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#retry?.[Symbol.dispose]();
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, 'close');
    this.#forget(child);
    child.stdin.end();
    using _timer = this.#parts.clock.after(endTimeout, () => void child.kill('SIGKILL'));
    await ended;
  }

  #run(): ChildProcessWithoutNullStreams {
    const [path = '', ...args] = this.#command;
    // In a session of its own: a Ctrl+C in the terminal is for the relay, which still asks questions.
    const child = spawn(path, args, { cwd: '/', env: environment, detached: true });
    this.#child = child;
    this.#misses = 0;
    child.on('spawn', () => policyStarted(this.#parts, child.pid));
    child.on('error', (error) => this.#end(child, error.message));
    child.on('exit', (code, signal) => this.#end(child, `exit ${signal ?? code}`));
    // It does not read any more: it is about to end, or its answers fail to come.
    child.stdin.on('error', () => {});
    readLines(child.stdout, answerCharacters, (line) => this.#answer(child, line));
    readLines(child.stderr, answerCharacters, (line, isCut) => {
      const dropped = this.#lines.pass();
      if (dropped !== undefined) policyLine(this.#parts, { line, isCut, dropped });
    });
    return child;
  }

  #answer(child: ChildProcessWithoutNullStreams, line: string): void {
    if (child !== this.#child) return;
    const answer = answerOf(line);
    if (answer === undefined || answer.id > this.#lastId) {
      this.#stop(child, 'it wrote a line that is no answer');
      return;
    }
    this.#ends = 0;
    this.#misses = 0;
    // If it comes too late, no call waits for it any more.
    this.#settle(answer.id, answer.allow);
  }

  #miss(child: ChildProcessWithoutNullStreams, id: number): void {
    this.#settle(id, undefined);
    if (child !== this.#child) return;
    this.#misses += 1;
    if (this.#misses >= mostMisses) this.#stop(child, `${mostMisses} questions without an answer`);
  }

  #settle(id: number, isAllowed: boolean | undefined): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(isAllowed);
  }

  /** Ends a program that does not keep to the protocol. */
  #stop(child: ChildProcessWithoutNullStreams, reason: string): void {
    this.#end(child, reason);
    child.kill('SIGKILL');
  }

  #end(child: ChildProcessWithoutNullStreams, reason: string): void {
    if (child !== this.#child) return;
    this.#forget(child);
    const pause = Math.min(longestPause, firstPause * 2 ** Math.min(this.#ends, 16));
    this.#ends += 1;
    policyEnded(this.#parts, { reason, seconds: pause / 1_000 });
    this.#retry = this.#parts.clock.after(pause, () => {
      if (!this.#isOver) this.#run();
    });
  }

  /** Leaves all open questions without an answer. */
  #forget(child: ChildProcessWithoutNullStreams): void {
    if (this.#child === child) this.#child = undefined;
    for (const id of [...this.#waiting.keys()]) this.#settle(id, undefined);
  }
}

/** Encodes as ASCII: some readers of lines end one at other signs, such as U+2028, which a post may have. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

interface Answer {
  readonly id: number;
  readonly allow: boolean;
}

function answerOf(line: string): Answer | undefined {
  try {
    const { id, allow } = JSON.parse(line) as Record<string, unknown>;
    if (!Number.isSafeInteger(id) || typeof allow !== 'boolean') return undefined;
    return { id: id as number, allow };
  } catch {
    return undefined;
  }
}
