import { unavailable } from '../unavailable.ts';
import { failureKind } from './errors.ts';
import type { PostgresObserver } from './observer.ts';
import type { ProcessLock } from './process-lock.ts';

/** Milliseconds before the first retry; doubled for each further one, up to the longest. */
const firstPause = 5;
const longestPause = 500;

interface RetriesParts {
  readonly lock: Pick<ProcessLock, 'lostTo'>;
  readonly observer: Pick<PostgresObserver, 'lost' | 'restored' | 'conflicted'>;
  /** Milliseconds a call is retried for. */
  readonly timeout: number;
  /** Limit of calls that run or wait. */
  readonly maxWaiting: number;
  /** Whether the server, when last asked, did not answer. */
  readonly isSilent: () => boolean;
}

/** Runs the calls of the engine, and retries what failed for a temporary reason. */
export class Retries implements AsyncDisposable {
  readonly #parts: RetriesParts;
  readonly #running = new Set<Promise<unknown>>();
  #isUnreachable = false;
  #isClosed = false;

  constructor(parts: RetriesParts) {
    this.#parts = parts;
  }

  /**
   * Retries a call up to its timeout.
   *
   * @param once runs the call; gets the deadline, on the clock of `performance.now`
   * @throws ProtocolError `temporarily_unavailable`
   */
  run<T>(once: (until: number) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('storage is closed'));
    // Without notices of the other process, this one would answer with outdated state.
    const { lostTo } = this.#parts.lock;
    if (lostTo !== undefined) {
      return Promise.reject(unavailable('another process has the database', { cause: lostTo }));
    }
    if (this.#running.size >= this.#parts.maxWaiting) {
      return Promise.reject(unavailable('too many calls wait for storage: try again later'));
    }
    const running = this.#retrying(once).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Reports that the server is unreachable, once until a call succeeds. */
  markUnreachable(error: unknown): void {
    if (this.#isUnreachable) return;
    this.#isUnreachable = true;
    this.#parts.observer.lost(error);
  }

  /** Lets the calls under way end and refuses others. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }

  async #retrying<T>(once: (until: number) => Promise<T>): Promise<T> {
    const until = performance.now() + this.#parts.timeout;
    for (let longest = firstPause; ; longest = Math.min(longest * 2, longestPause)) {
      try {
        const value = await once(until);
        this.#markReachable();
        return value;
      } catch (error) {
        const kind = failureKind(error);
        if (kind === 'refused') throw error;
        if (kind === 'lost') this.markUnreachable(error);
        // Random, so that two calls that conflicted do not conflict again.
        const pause = longest * (0.5 + Math.random() / 2);
        const isHopeless = kind === 'lost' && this.#parts.isSilent();
        if (isHopeless || performance.now() + pause > until)
          throw unavailable(unavailableReasons[kind], { cause: error });
        if (kind === 'conflict') this.#parts.observer.conflicted();
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  #markReachable(): void {
    if (!this.#isUnreachable) return;
    this.#isUnreachable = false;
    this.#parts.observer.restored();
  }
}

const unavailableReasons = {
  conflict: 'too many conflicting writes: try again later',
  lost: 'storage cannot be reached',
  busy: 'storage is too busy',
} as const;
