/** Calls over a port: results, errors, aborts and streams, each by the ID of its call. */
import { ClientError, isClientError, type PlainError } from '../../errors.ts';
import type { OtherError, Reply, Request, WorkerClientOptions, WorkerPort } from './messages.ts';

const ended = Symbol('ended');

/** IDs are of the page: all clients hear what comes from the port, each knows its own. */
let lastId = Math.floor(Math.random() * 2 ** 48);

/** The calls of one client in a worker, until it is closed or the worker fails. */
export class PortCalls {
  readonly #port: WorkerPort;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  /** Progress listeners by call ID. */
  readonly #progressListeners = new Map<number, Progress>();
  readonly #listening = new AbortController();
  /** Why no call is made any more. */
  #over: Error | undefined;
  #closed: Promise<void> | undefined;

  constructor(port: WorkerPort) {
    this.#port = port;
    const listening = { signal: this.#listening.signal };
    port.addEventListener('message', ({ data }) => this.#settle(data as Reply | null), listening);
    const failed = (message: string) => this.#end(new Error(`the worker failed: ${message}`));
    port.addEventListener(
      'error',
      ({ message = 'its script cannot be loaded' }) => failed(message),
      listening,
    );
    // Whose reply it was is not known.
    port.addEventListener('messageerror', () => failed('a reply cannot be read'), listening);
    port.start?.();
  }

  /** @throws Error if the worker's script cannot be loaded or fails */
  async open(options: WorkerClientOptions): Promise<void> {
    try {
      await this.#ask({ kind: 'open', id: newId(), options });
    } catch (error) {
      this.#end(error as Error);
      throw error;
    }
  }

  /** Closes the client; calls that wait are rejected, streams end. A worker that failed is closed. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    if (this.#over !== undefined) return;
    try {
      await this.call(['close'], []);
    } finally {
      this.#end(new ClientError('store_unavailable', 'the client was closed'));
    }
  }

  #end(reason: Error): void {
    this.#over ??= reason;
    this.#listening.abort();
    for (const answer of this.#pending.values()) answer.reject(reason);
    this.#pending.clear();
  }

  /**
   * Calls a method of the client or account. The first argument with a `signal` or `progress` passes its abort on, and
   * is told of the progress.
   * @throws ClientError, or an Error with the name, message and code of the worker's
   */
  async call(path: readonly string[], args: readonly unknown[]): Promise<unknown> {
    const index = args.findIndex((arg) => signalOf(arg) ?? progressOf(arg));
    const [signal, progress] = [signalOf(args[index]), progressOf(args[index])];
    const keys: ArrayBuffer[] = [];
    const posted = args.map((arg, at) => {
      const key = accountKeyOf(arg);
      if (at !== index && key === undefined) return arg;
      const { signal: _stays, progress: _too, ...others } = membersOf(arg);
      const rest = { ...others, ...(progressOf(arg) && { progress: true }) };
      if (key === undefined) return rest;
      // The copy is moved to the worker, which clears it; the caller's own is the caller's to clear.
      const accountKey = new Uint8Array(key);
      keys.push(accountKey.buffer);
      return { ...rest, accountKey };
    });
    const id = newId();
    const abortable = index === -1 ? {} : { abortable: index };
    const request = { kind: 'call', id, path, args: posted, ...abortable } as const;
    if (progress !== undefined) this.#progressListeners.set(id, progress);
    try {
      return await this.#whileNotAborted(id, signal, () => this.#ask(request, keys));
    } finally {
      this.#progressListeners.delete(id);
    }
  }

  /** Yields what the worker yields, each value when it is asked for, until the signal aborts. */
  async *stream<T>(
    path: readonly string[],
    args: readonly unknown[],
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, undefined> {
    const id = newId();
    let request: Request = { kind: 'call', id, path, args };
    try {
      for (;;) {
        const next: Request = request;
        const value = await this.#whileNotAborted(id, signal, () => this.#ask(next));
        if (value === ended) return undefined;
        yield value as T;
        request = { kind: 'next', id };
      }
    } catch (error) {
      if (this.#closed !== undefined && error === this.#over) return undefined;
      throw error;
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

  #ask(request: Request, transfer: ArrayBuffer[] = []): Promise<unknown> {
    if (this.#over !== undefined) return Promise.reject(this.#over);
    const answer = Promise.withResolvers<unknown>();
    this.#pending.set(request.id, answer);
    try {
      this.#port.postMessage(request, transfer);
    } catch (cause) {
      this.#pending.delete(request.id);
      const reason = 'functions and objects with methods cannot be passed to a worker';
      answer.reject(new ClientError('invalid_input', reason, { cause }));
    }
    return answer.promise;
  }

  /** What is no reply to a call of this client is another's, or of the app. */
  #settle(reply: Reply | null): void {
    const answer = this.#pending.get(reply?.id ?? 0);
    if (reply === null || answer === undefined) return;
    if ('progress' in reply) {
      this.#progressListeners.get(reply.id)?.(reply.progress);
      return;
    }
    this.#pending.delete(reply.id);
    if ('error' in reply) answer.reject(revived(reply.error));
    else answer.resolve('done' in reply ? ended : reply.value);
  }
}

function newId(): number {
  lastId += 1;
  return lastId;
}

function signalOf(arg: unknown): AbortSignal | undefined {
  const { signal } = membersOf(arg);
  return signal instanceof AbortSignal ? signal : undefined;
}

type Progress = (progress: unknown) => void;

function progressOf(arg: unknown): Progress | undefined {
  const { progress } = membersOf(arg);
  return typeof progress === 'function' ? (progress as Progress) : undefined;
}

/** The account key among a call's options, as bytes. */
export function accountKeyOf(arg: unknown): Uint8Array | undefined {
  const { accountKey } = membersOf(arg);
  return accountKey instanceof Uint8Array ? accountKey : undefined;
}

function membersOf(arg: unknown): Readonly<Record<string, unknown>> {
  const hasMembers = typeof arg === 'object' && arg !== null && !Array.isArray(arg);
  return hasMembers ? (arg as Readonly<Record<string, unknown>>) : {};
}

/** An error of the worker, as an object that can be thrown; compare its code. */
function revived(error: PlainError | OtherError): Error {
  if (isClientError(error)) {
    return Object.assign(new ClientError(error.code, error.message), error);
  }
  return Object.assign(new Error(error.message), error);
}
