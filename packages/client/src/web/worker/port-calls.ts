/** Calls over a port: results, errors, aborts and streams, each by the ID of its call. */
import { ClientError, isClientError, type PlainError } from '../../errors.ts';
import type { OtherError, Reply, Request, WorkerClientOptions, WorkerPort } from './messages.ts';

const ended = Symbol('ended');

export class PortCalls {
  readonly #port: WorkerPort;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  constructor(port: WorkerPort) {
    this.#port = port;
    port.addEventListener('message', ({ data }) => this.#settle(data as Reply));
    port.start?.();
  }

  /** @throws Error if the worker's script cannot be loaded or fails */
  async open(options: WorkerClientOptions): Promise<void> {
    const failure = Promise.withResolvers<never>();
    this.#port.addEventListener('error', ({ message = 'its script cannot be loaded' }) =>
      failure.reject(new Error(`the worker failed: ${message}`)),
    );
    const opened = this.#ask({ kind: 'open', id: this.#newId(), options });
    await Promise.race([opened, failure.promise]);
  }

  /**
   * Calls a method of the client or account. The first argument with a `signal` passes its abort on.
   * @throws ClientError, or an Error with the name, message and code of the worker's
   */
  async call(path: readonly string[], args: readonly unknown[]): Promise<unknown> {
    const index = args.findIndex((arg) => signalOf(arg) !== undefined);
    const signal = signalOf(args[index]);
    const withoutSignal = args.map((arg, at) => {
      if (at !== index) return arg;
      const { signal: _stays, ...rest } = arg as { readonly signal?: unknown };
      return rest;
    });
    const id = this.#newId();
    const abortable = signal === undefined ? {} : { abortable: index };
    const request = { kind: 'call', id, path, args: withoutSignal, ...abortable } as const;
    return await this.#whileNotAborted(id, signal, () => this.#ask(request));
  }

  /** Yields what the worker yields, each value when it is asked for, until the signal aborts. */
  async *stream<T>(
    path: readonly string[],
    args: readonly unknown[],
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, undefined> {
    const id = this.#newId();
    let request: Request = { kind: 'call', id, path, args };
    try {
      for (;;) {
        const next: Request = request;
        const value = await this.#whileNotAborted(id, signal, () => this.#ask(next));
        if (value === ended) return undefined;
        yield value as T;
        request = { kind: 'next', id };
      }
    } finally {
      this.#port.postMessage({ kind: 'leave', id } satisfies Request);
    }
  }

  async #whileNotAborted<T>(
    id: number,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    const abort = () => {
      this.#port.postMessage({ kind: 'abort', id } satisfies Request);
    };
    const result = work();
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    try {
      return await result;
    } catch (error) {
      // The reason is the page's own object.
      if (signal?.aborted && !isClientError(error)) throw signal.reason;
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  #newId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  #ask(request: Request): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>();
    this.#pending.set(request.id, answer);
    try {
      this.#port.postMessage(request);
    } catch (cause) {
      this.#pending.delete(request.id);
      const reason = 'functions and objects with methods cannot be passed to a worker';
      answer.reject(new ClientError('invalid_input', reason, { cause }));
    }
    return answer.promise;
  }

  #settle(reply: Reply): void {
    const answer = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('error' in reply) answer?.reject(revived(reply.error));
    else answer?.resolve('done' in reply ? ended : reply.value);
  }
}

function signalOf(arg: unknown): AbortSignal | undefined {
  if (typeof arg !== 'object' || arg === null || Array.isArray(arg)) return undefined;
  const { signal } = arg as { readonly signal?: unknown };
  return signal instanceof AbortSignal ? signal : undefined;
}

/** An error of the worker, as an object that can be thrown; compare its code. */
function revived(error: PlainError | OtherError): Error {
  if (isClientError(error)) {
    return Object.assign(new ClientError(error.code, error.message), error);
  }
  return Object.assign(new Error(error.message), error);
}
