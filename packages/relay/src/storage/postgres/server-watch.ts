import { setTimeout as pause } from 'node:timers/promises';
import type { PostgresTimeouts } from './timeouts.ts';

interface ServerWatchParts {
  readonly timeouts: Pick<PostgresTimeouts, 'probe' | 'silence' | 'overdue'>;
  /** Asks the server for an answer; rejects if there is no connection. */
  readonly probe: () => Promise<unknown>;
  /** Breaks all connections: the server answers on none. */
  readonly breakAll: () => void;
  /** Called at each probe that fails after `overdue`, and once at the first that succeeds then. */
  readonly reachable: (isReachable: boolean) => void;
}

/** Milliseconds for an answer that arrived while this process was busy or stopped. */
const grace = 100;

/**
 * Watches, in real time, whether the server answers. A server that is unreachable without a closed
 * connection would otherwise keep every call waiting for the timeout of its statement.
 */
export class ServerWatch implements AsyncDisposable {
  readonly #parts: ServerWatchParts;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #failingSince: number | undefined;
  /** Ends the pause before the next question. */
  #pause = new AbortController();
  #isSilent = false;
  /** Whether an answer is overdue: that was reported. */
  #isOverdue = false;

  constructor(parts: ServerWatchParts) {
    this.#parts = parts;
    this.#running = this.#run();
  }

  /** Whether the server, when last asked, did not answer in time: retries would wait as long. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Asks at once: there is a connection again. */
  wake(): void {
    this.#pause.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { timeouts } = this.#parts;
    while (!signal.aborted) {
      await wait(timeouts.probe, AbortSignal.any([signal, this.#pause.signal]));
      if (signal.aborted) return;
      this.#pause = new AbortController();
      const began = performance.now();
      const isAnswered = await this.#ask();
      if (signal.aborted) return;
      if (isAnswered) this.#answered();
      else this.#unanswered(began);
    }
  }

  async #ask(): Promise<boolean> {
    const { breakAll, probe, timeouts } = this.#parts;
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#stopping.signal]);
    const answer = probe().then(
      () => true,
      () => false,
    );
    const late = wait(timeouts.silence, signal).then(() => undefined);
    const found =
      (await Promise.race([answer, late])) ??
      (await Promise.race([answer, wait(grace, signal).then(() => undefined)]));
    over.abort();
    if (found === undefined && !this.#stopping.signal.aborted) {
      this.#isSilent = true;
      breakAll();
    }
    return found ?? false;
  }

  #answered(): void {
    this.#failingSince = undefined;
    this.#isSilent = false;
    if (!this.#isOverdue) return;
    this.#isOverdue = false;
    this.#parts.reachable(true);
  }

  #unanswered(began: number): void {
    const { reachable, timeouts } = this.#parts;
    this.#failingSince ??= began;
    if (performance.now() - this.#failingSince < timeouts.overdue) return;
    this.#isOverdue = true;
    reachable(false);
  }
}

/** Returns whether the time passed; false if it was aborted. */
async function wait(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return await pause(milliseconds, true, { signal, ref: false }).catch(() => false);
}
