import type { RelayContext } from '../context.ts';
import { hintsDelayed } from '../observability/events.ts';
import type { Listener } from './listener.ts';

/** Connections that are checked in one snapshot. */
export const recheckBatchSize = 250;
/** Milliseconds before a retry after a storage failure. */
const retryAfter = 2_000;

type Context = Pick<RelayContext, 'clock' | 'log' | 'metrics'>;

/**
 * A queue that rechecks subscribers in storage, one group or channel at a time, so that many at once
 * do not overload storage; retries 2 s after a storage failure.
 */
export class RecheckQueue<T> implements AsyncDisposable {
  readonly #context: Context;
  readonly #recheck: (entry: T) => Promise<void>;
  readonly #waiting = new Set<T>();
  #running: Promise<void> | undefined;
  #retry: Disposable | undefined;
  #isStopping = false;

  /** @param recheck checks one entry; if it throws, the error is logged and the entry retried */
  constructor(context: Context, recheck: (entry: T) => Promise<void>) {
    this.#context = context;
    this.#recheck = recheck;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Adds an entry, if it is not in the queue; call {@link start} afterwards. */
  add(entry: T): void {
    this.#waiting.add(entry);
  }

  /** Removes an entry. */
  delete(entry: T): void {
    this.#waiting.delete(entry);
  }

  /** Starts, unless it runs already or waits for a retry. */
  start(): void {
    if (this.#waiting.size === 0 || this.#isStopping || this.#retry !== undefined) return;
    this.#running ??= this.#run();
  }

  /** Lets the current recheck finish and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#retry?.[Symbol.dispose]();
    await this.#running;
  }

  /** Processes the queue, including entries added meanwhile. */
  async #run(): Promise<void> {
    for (const entry of this.#waiting) {
      if (this.#isStopping) break;
      this.#waiting.delete(entry);
      try {
        await this.#recheck(entry);
      } catch (error) {
        this.#waiting.add(entry);
        this.#retryLater(error);
        break;
      }
    }
    this.#running = undefined;
    this.start();
  }

  #retryLater(error: unknown): void {
    hintsDelayed(this.#context, error);
    this.#retry = this.#context.clock.after(retryAfter, () => {
      this.#retry = undefined;
      this.start();
    });
  }
}

/**
 * Applies the end of a connection's session as read from storage: revokes a session that storage does
 * not have any more, and shortens any other to its stored end.
 *
 * @param seen ID of the session that was read; a session renewed since is valid
 * @returns whether the session is valid
 */
export function applySessionEnd(
  listener: Listener,
  seen: string,
  ends: ReadonlyMap<string, number>,
): boolean {
  if (listener.session.id !== seen) return true;
  const end = ends.get(seen);
  if (end === undefined) listener.revoke();
  else listener.cap(end);
  return end !== undefined;
}
