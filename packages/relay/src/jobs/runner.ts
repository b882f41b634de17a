import type { Job, Jobs, OnWake, RelayContext } from '../context.ts';
import { nextTurn } from '../event-loop.ts';
import { jobFailed, jobSucceeded } from '../observability/events.ts';
import type { ClockGuard } from './clock-guard.ts';
import { delayAfter } from './retry-backoff.ts';

/**
 * Longest seconds between two runs of a job: what becomes due before the deadline that it knows is
 * late by a minute at the most; a wake in another process does not reach this one, and that process
 * may be gone.
 */
const idleIntervals = { alone: 60, shared: 30 } as const;

/**
 * Runs each job on its own: at the start, at its deadlines, and when woken; never twice at once in
 * this process. Other processes run the same jobs: transactions prevent doing anything twice.
 */
export class JobRunner implements Jobs, AsyncDisposable {
  readonly #loops = new Map<string, JobLoop>();
  readonly #idleInterval: number;

  /** @param processes `shared` if other processes of this relay can give these jobs work */
  constructor(processes: keyof typeof idleIntervals) {
    this.#idleInterval = idleIntervals[processes];
  }

  /**
   * Starts every job with a first run.
   * @param clockGuard tells when jobs that delete may run
   */
  start(
    context: RelayContext,
    jobs: readonly Job[],
    clockGuard?: Pick<ClockGuard, 'secondsToWait'>,
  ): void {
    for (const job of jobs) {
      if (this.#loops.has(job.name)) throw new Error(`two jobs are called ${job.name}`);
      const loop = new JobLoop(job, context, {
        idleInterval: this.#idleInterval,
        clockGuard: job.deletes ? clockGuard : undefined,
      });
      this.#loops.set(job.name, loop);
      loop.wake();
    }
  }

  /** Names of the jobs that run. */
  get names(): readonly string[] {
    return [...this.#loops.keys()];
  }

  wake(name: string): void {
    this.#loops.get(name)?.wake();
  }

  /** Runs every job soon: their deadlines follow a clock that was moved. */
  wakeAll(): void {
    for (const loop of this.#loops.values()) loop.wake();
  }

  /** Waits for the batches in flight and starts no others. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#loops.values()].map((loop) => loop.stop()));
  }
}

class JobLoop {
  readonly #job: Job;
  readonly #context: RelayContext;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #isWoken = false;
  #listener: (() => void) | undefined;
  #timer: Disposable | undefined;
  #failures = 0;
  /** When the last run while deleting is paused began. */
  #pausedRun: number | undefined;
  readonly #idleInterval: number;
  readonly #clockGuard: Pick<ClockGuard, 'secondsToWait'> | undefined;
  readonly #onWake: OnWake = (listener) => {
    this.#listener = listener;
    return {
      [Symbol.dispose]: () => {
        this.#listener = undefined;
      },
    };
  };

  constructor(
    job: Job,
    context: RelayContext,
    parts: {
      readonly idleInterval: number;
      readonly clockGuard: Pick<ClockGuard, 'secondsToWait'> | undefined;
    },
  ) {
    this.#job = job;
    this.#context = context;
    this.#idleInterval = parts.idleInterval;
    this.#clockGuard = parts.clockGuard;
  }

  wake(): void {
    if (this.#stopping.signal.aborted) return;
    this.#isWoken = true;
    this.#listener?.();
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.[Symbol.dispose]();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#isWoken && !signal.aborted) {
      // Calls come first: the event loop reads its sockets before a job runs.
      await nextTurn();
      this.#isWoken = false;
      this.#timer?.[Symbol.dispose]();
      const wait = await this.#once(signal);
      if (wait <= 0) this.#isWoken = true;
      else if (!signal.aborted) this.#schedule(wait);
    }
    this.#running = undefined;
  }

  /** Runs the job once; returns the seconds to wait for the next run. */
  async #once(signal: AbortSignal): Promise<number> {
    try {
      const pause = (await this.#clockGuard?.secondsToWait()) ?? 0;
      const next =
        pause > 0
          ? await this.#runPaused(signal)
          : await this.#job.run(this.#context, signal, this.#onWake);
      if (pause === 0) this.#pausedRun = undefined;
      this.#failures = 0;
      const now = this.#context.clock.now();
      const overdue = next === undefined ? 0 : Math.max(0, now - next);
      jobSucceeded(this.#context, { job: this.#job.name, at: now, overdue });
      const longest = pause > 0 ? pause : this.#idleInterval;
      const wait = next === undefined ? longest : next - now;
      return Math.min(wait, longest);
    } catch (error) {
      if (signal.aborted) return this.#idleInterval;
      this.#failures += 1;
      const { retryAtMost = Number.POSITIVE_INFINITY } = this.#job;
      const retryInSeconds = Math.min(delayAfter(this.#failures), retryAtMost);
      jobFailed(this.#context, { job: this.#job.name, error, retryInSeconds });
      return retryInSeconds;
    }
  }

  async #runPaused(signal: AbortSignal): Promise<number | undefined> {
    const since = this.#pausedRun;
    const now = this.#context.clock.now();
    const next = await this.#job.runPaused?.(this.#context, signal, since);
    this.#pausedRun = now;
    return next;
  }

  #schedule(seconds: number): void {
    this.#timer = this.#context.clock.after(seconds * 1_000, () => this.wake());
  }
}
