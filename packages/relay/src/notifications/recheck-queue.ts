import type { RelayContext } from '../context.ts';
import { hintsDelayed } from '../observability/events.ts';
import type { Listener } from './listener.ts';

/** Connections whose standing one snapshot tells. */
export const recheckBatchSize = 250;
/** Milliseconds until what could not be looked up is looked up again. */
const retryAfter = 2_000;

type Context = Pick<RelayContext, 'clock' | 'log' | 'metrics'>;

/**
 * What must be looked up in storage before anybody hears of it: one after another, so that a crowd
 * of them takes no more of storage than one, and again after a while where storage fails.
 */
export class RecheckQueue<T> implements AsyncDisposable {
  readonly #context: Context;
  readonly #lookUp: (thing: T) => Promise<void>;
  readonly #waiting = new Set<T>();
  #running: Promise<void> | undefined;
  #retry: Disposable | undefined;
  #isStopping = false;

  /** @param lookUp what it throws is logged, and the thing waits again */
  constructor(context: Context, lookUp: (thing: T) => Promise<void>) {
    this.#context = context;
    this.#lookUp = lookUp;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Notes a thing, for {@link start} to begin with; one that waits already waits once. */
  add(thing: T): void {
    this.#waiting.add(thing);
  }

  delete(thing: T): void {
    this.#waiting.delete(thing);
  }

  /** Begins, unless it runs or waits for storage to come back. */
  start(): void {
    if (this.#waiting.size === 0 || this.#isStopping || this.#retry !== undefined) return;
    this.#running ??= this.#run();
  }

  /** Lets the look under way finish and begins no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#retry?.[Symbol.dispose]();
    await this.#running;
  }

  /** What comes meanwhile is looked up too. */
  async #run(): Promise<void> {
    for (const thing of this.#waiting) {
      if (this.#isStopping) break;
      this.#waiting.delete(thing);
      try {
        await this.#lookUp(thing);
      } catch (error) {
        this.#waiting.add(thing);
        this.#tryLater(error);
        break;
      }
    }
    this.#running = undefined;
    this.start();
  }

  #tryLater(error: unknown): void {
    hintsDelayed(this.#context, error);
    this.#retry = this.#context.clock.after(retryAfter, () => {
      this.#retry = undefined;
      this.start();
    });
  }
}

/**
 * Whether a connection's session stands, as storage said of the one it had when it was looked up.
 * Ends what storage does not have any more, and with its device's certificate at the latest.
 *
 * @param seen ID of the session that was looked up; one that was renewed since stands
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
