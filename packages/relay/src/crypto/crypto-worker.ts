import { Worker } from 'node:worker_threads';
import { Queue } from '../queue.ts';

/** A batch of work for the worker: `verify-batch.ts`, `seal-batch.ts`. */
export interface Request {
  readonly kind: 'verify' | 'seal';
  readonly buffer: ArrayBuffer;
}

export interface Answer {
  /** The buffer of the request, with the results; absent if the thread cannot serve it. */
  readonly buffer?: ArrayBuffer;
}

/**
 * A worker thread for cryptography that would hold the event loop. It answers requests in their
 * order, so a caller must have few and short ones under way. It starts with the first one: a relay
 * that is idle does without its memory.
 */
export class CryptoWorker implements AsyncDisposable {
  #thread: Worker | undefined;
  /** Those who wait for an answer. */
  readonly #waiting = new Queue<(answer: Answer | undefined) => void>();
  readonly #stopped = Promise.withResolvers<unknown>();
  readonly #makeThread: () => Worker;
  #isRunning = true;

  /** @param makeThread throws where the system has no thread to give */
  constructor(makeThread = cryptoThread) {
    this.#makeThread = makeThread;
  }

  /** Whether it answers, or will once it is asked. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Resolves when it does not answer any more: to an error, or `undefined` if it was closed. */
  get stopped(): Promise<unknown> {
    return this.#stopped.promise;
  }

  /** Sends a request, and moves its buffer away; the answer is `undefined` if the worker stopped. */
  ask(request: Request): Promise<Answer | undefined> {
    if (this.#isRunning && this.#thread === undefined) this.#start();
    const thread = this.#thread;
    if (!this.#isRunning || thread === undefined) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      thread.postMessage(request, [request.buffer]);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop(undefined);
    await this.#thread?.terminate();
  }

  #start(): void {
    try {
      this.#thread = this.#makeThread();
    } catch (error) {
      this.#stop(error);
      return;
    }
    this.#thread.on('message', (answer: Answer) => this.#waiting.shift()?.(answer));
    this.#thread.once('error', (error) => this.#stop(error));
    this.#thread.once('exit', (code) => this.#stop(new Error(`the thread ended with ${code}`)));
  }

  #stop(error: unknown): void {
    this.#isRunning = false;
    this.#stopped.resolve(error);
    while (this.#waiting.size > 0) this.#waiting.shift()?.(undefined);
  }
}

/** It has little to remember: a batch of requests is outside the heap. MiB. */
const resourceLimits = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

function cryptoThread(): Worker {
  // The file has the extension of this one: in the sources, in the package, and in a bundle.
  const [extension] = /\.\w+$/.exec(import.meta.url) ?? [];
  return new Worker(new URL(`./crypto-thread${extension}`, import.meta.url), { resourceLimits });
}
