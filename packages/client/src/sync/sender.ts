import { untilAborted } from '../connect/deadline.ts';
import { RelayUnreachable } from '../errors.ts';
import { Mutex } from '../store/mutex.ts';

/** Sends everything that waits in one conversation, in order. */
export type SendWork = (signal: AbortSignal) => Promise<void>;

interface Lane {
  /** Runs once more after the current work: something was added meanwhile. */
  next: SendWork | undefined;
  readonly done: Promise<void>;
}

/**
 * Sends what waits: one conversation's messages one after another, so that none overtakes another;
 * conversations independently, so that one that is stuck delays no other. Callers that send the same
 * conversation share one run.
 */
export class Sender {
  /** Gives messages their places in the order of the calls, whatever is checked meanwhile. */
  readonly writing = new Mutex();
  readonly #lanes = new Map<string, Lane>();
  readonly #waiting = new Map<string, Set<PromiseWithResolvers<void>>>();
  readonly #stop = new AbortController();

  /** Runs work in a conversation, or joins the run under way, which then runs the work too. */
  run(conversation: string, work: SendWork): Promise<void> {
    const running = this.#lanes.get(conversation);
    if (running !== undefined) {
      running.next = work;
      return running.done;
    }
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    const lane: Lane = { next: work, done };
    this.#lanes.set(conversation, lane);
    void this.#work(conversation, lane).then(resolve, reject);
    return done;
  }

  /** Runs work in the background. What fails stays stored, and the next synchronization throws. */
  start(conversation: string, work: SendWork): void {
    this.run(conversation, work).catch(() => undefined);
  }

  /** Whether work of a conversation is under way. */
  isRunning(conversation: string): boolean {
    return this.#lanes.has(conversation);
  }

  /** Runs work while nothing else is sent in a conversation. */
  async alone<T>(conversation: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    for (let lane = this.#lanes.get(conversation); lane !== undefined; ) {
      await lane.done.catch(() => undefined);
      lane = this.#lanes.get(conversation);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.run(conversation, (signal) => work(signal).then(resolve, reject)).catch(reject);
    return await promise;
  }

  /**
   * Sends a conversation until one message has an answer, which {@link answered} tells.
   *
   * @throws the error that ended the message, or the attempt; the signal's reason
   */
  async untilAnswered(
    id: string,
    { conversation, work, signal }: { conversation: string; work: SendWork; signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted();
    const answer = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(answer));
    try {
      const either = Promise.race([answer.promise, this.run(conversation, work)]);
      await untilAborted(either, signal);
    } finally {
      waiting.delete(answer);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    }
  }

  /** Resolves the callers that wait for a message: it has an answer, or was given up with an error. */
  answered(id: string, error?: unknown): void {
    for (const { resolve, reject } of this.#waiting.get(id) ?? []) {
      if (error === undefined) resolve();
      else reject(error);
    }
    this.#waiting.delete(id);
  }

  /** Ends all runs; what waits stays stored. */
  async close(): Promise<void> {
    this.#stop.abort(
      new RelayUnreachable('the client was closed: open it again', { outcomeUnknown: true }),
    );
    await Promise.allSettled([...this.#lanes.values()].map(({ done }) => done));
  }

  async #work(conversation: string, lane: Lane): Promise<void> {
    const { signal } = this.#stop;
    try {
      for (let work = lane.next; work !== undefined; work = lane.next) {
        lane.next = undefined;
        signal.throwIfAborted();
        await work(signal);
      }
    } finally {
      // At once, so that no later work is added to a run that has ended.
      this.#lanes.delete(conversation);
    }
  }
}
