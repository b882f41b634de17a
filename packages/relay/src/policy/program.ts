import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { PolicyQuestion, RelayContext } from '../context.ts';
import { nextTurn } from '../event-loop.ts';
import { policyEnded, policyLine, policyStarted } from '../observability/policy-events.ts';
import { unavailable } from '../storage/unavailable.ts';
import { LinesOfMinute, readLines } from './lines.ts';

/** Characters of an answer, and of a line that the program writes for the log. */
const answerCharacters = 1_024;
/**
 * Questions in a row without an answer in time, after which the program is ended. It is also ended
 * if one question has no answer after as many times that time.
 */
const mostMisses = 10;
/** Bytes of questions without an answer: they lie in this process until the program reads them. */
const mostBytes = 16_777_216;
/** Milliseconds until it is started again: at first, doubled each time, and at the most. */
const firstPause = 1_000;
const longestPause = 60_000;
/** Milliseconds for it to end when its input has ended. */
const endTimeout = 2_000;
/** All of its environment: where the interpreter of a script is looked for. */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin' };

type Parts = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;

/** A question that the program has not answered yet. */
interface Open {
  readonly bytes: number;
  /** Takes the answer; `undefined` if there is none in time. */
  readonly take: (isAllowed: boolean | undefined) => void;
  readonly over: () => void;
  /** How often the time for an answer has passed. */
  misses: number;
  timer: Disposable;
}

/**
 * A program that answers questions, one JSON text a line: `{ "id": 1, "ask": "group", ... }` is
 * answered by `{ "id": 1, "allow": true }`, in any order. If it ends, or writes anything else, it is
 * ended and started again, after a pause. All processes of its group end with it.
 */
export class PolicyProgram implements AsyncDisposable {
  readonly #command: readonly string[];
  readonly #parts: Parts;
  readonly #lines: LinesOfMinute;
  /** By ID, also those whose time has passed: they may still lie in the program's input. */
  readonly #open = new Map<number, Open>();
  /** Of all open questions. */
  #bytes = 0;
  #child: ChildProcessWithoutNullStreams | undefined;
  /** Resolves when the last child is gone. */
  #gone: Promise<void> = Promise.resolve();
  #lastId = 0;
  #misses = 0;
  /** Ends since the last answer in time. */
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
    try {
      await once(program.#run(), 'spawn');
    } catch (error) {
      // It is not started again.
      await program[Symbol.asyncDispose]();
      throw error;
    }
    return program;
  }

  /** Process ID, while the program runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Returns whether the program allows it; `undefined` without a valid answer in time.
   *
   * @param over is called when the program has no more to do with the question: it answered, in time
   *   or later, or it ended
   * @throws ProtocolError `temporarily_unavailable` if too much waits for its answers
   */
  async ask(question: PolicyQuestion, over: () => void = () => {}): Promise<boolean | undefined> {
    const child = this.#child;
    if (child === undefined) {
      over();
      return undefined;
    }
    const id = this.#lastId + 1;
    const line = `${asciiJson({ id, ...question })}\n`;
    if (this.#bytes + line.length > mostBytes) {
      over();
      // Never by `onFailure`, as for too many questions: it must not be a way past the program.
      throw unavailable('too much waits for answers: try again');
    }
    this.#lastId = id;
    const { promise, resolve: take } = Promise.withResolvers<boolean | undefined>();
    const timer = this.#parts.clock.after(this.#parts.limits.policyTimeout, () => this.#miss(id));
    this.#open.set(id, { bytes: line.length, take, over, misses: 0, timer });
    this.#bytes += line.length;
    child.stdin.write(line);
    return await promise;
  }

  /** Ends the program: its input first, then, if that does not help, its processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#retry?.[Symbol.dispose]();
    const child = this.#child;
    if (child !== undefined) {
      this.#forget(child);
      child.stdin.end();
    }
    using _timer = this.#parts.clock.after(endTimeout, () => {
      if (child !== undefined) killGroup(child);
    });
    await this.#gone;
  }

  #run(): ChildProcessWithoutNullStreams {
    const [path = '', ...args] = this.#command;
    // In a session of its own: a Ctrl+C in the terminal is for the relay, which still asks questions.
    const child = spawn(path, args, { cwd: '/', env: environment, detached: true });
    this.#child = child;
    this.#gone = afterExit(child);
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
    // A late answer is no sign that the program keeps up with the questions.
    if (this.#open.get(answer.id)?.misses === 0) {
      this.#ends = 0;
      this.#misses = 0;
    }
    this.#settle(answer.id, answer.allow);
  }

  #miss(id: number): void {
    const child = this.#child;
    const open = this.#open.get(id);
    if (child === undefined || open === undefined) return;
    open.take(undefined);
    if (open.misses === 0) this.#misses += 1;
    open.misses += 1;
    if (this.#misses >= mostMisses) {
      this.#stop(child, `${mostMisses} questions without an answer in time`);
    } else if (open.misses >= mostMisses) {
      this.#stop(child, 'a question without an answer');
    } else {
      const { clock, limits } = this.#parts;
      open.timer = clock.after(limits.policyTimeout, () => this.#miss(id));
    }
  }

  /** Closes a question; if its time has passed, its answer is ignored. */
  #settle(id: number, isAllowed: boolean | undefined): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    this.#bytes -= open.bytes;
    open.timer[Symbol.dispose]();
    open.take(isAllowed);
    open.over();
  }

  /** Ends a program that does not keep to the protocol. */
  #stop(child: ChildProcessWithoutNullStreams, reason: string): void {
    this.#end(child, reason);
    killGroup(child);
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
    for (const id of [...this.#open.keys()]) this.#settle(id, undefined);
  }
}

/** Ends a program at once, with what it started, which may have its pipes open. */
function killGroup({ pid }: ChildProcessWithoutNullStreams): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it runs any more.
  }
}

/** Resolves when a program has ended, or could not be run; then nothing of it keeps this process. */
async function afterExit(child: ChildProcessWithoutNullStreams): Promise<void> {
  await once(child, 'exit').catch(() => {});
  killGroup(child);
  // What it wrote at last is read in the next turn. The end of the pipes would be no sign: a process
  // that left the group may have them open for ever.
  await nextTurn();
  await nextTurn();
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
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
