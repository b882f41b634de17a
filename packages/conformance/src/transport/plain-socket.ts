/** A deliberately plain WebSocket client: raw messages out, raw messages in. */
import { WebSocket } from 'ws';

/** Why and how the relay closed a connection. */
export interface Closed {
  readonly code: number;
  readonly reason: string;
}

/** One open connection. Incoming texts queue up until they are asked for. */
export class PlainSocket implements Disposable {
  readonly #socket: WebSocket;
  readonly #texts: string[] = [];
  readonly #waiting = new Set<() => void>();
  /** Settles when the connection ends. */
  readonly closed: Promise<Closed>;
  #ended = false;
  #listener: ((text: string) => void) | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<Closed>();
    this.closed = promise;
    socket.on('message', (data, isBinary) => {
      if (isBinary) return;
      if (this.#listener === undefined) this.#texts.push(data.toString());
      else this.#listener(data.toString());
      this.#wake();
    });
    socket.on('error', () => {});
    socket.on('close', (code, reason) => {
      this.#ended = true;
      resolve({ code, reason: reason.toString() });
      this.#wake();
    });
  }

  static async open(url: string, ca: string | undefined): Promise<PlainSocket> {
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      ...(ca === undefined ? {} : { ca }),
    });
    const plain = new PlainSocket(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return plain;
  }

  send(data: string | Uint8Array): void {
    this.#socket.send(data);
  }

  /** Hands every text that arrives from now on to a listener; nothing queues up any more. */
  listen(listener: (text: string) => void): void {
    this.#listener = listener;
  }

  /** Stops or resumes reading from the network, to play a slow reader. */
  pause(paused: boolean): void {
    if (paused) this.#socket.pause();
    else this.#socket.resume();
  }

  /**
   * The first text that `wanted` accepts, arrived or yet to come; others stay in order.
   * @throws Error after `timeout` milliseconds, or when the connection ends first
   */
  async receive(wanted: (text: string) => boolean, timeout = 30_000): Promise<string> {
    const deadline = AbortSignal.timeout(timeout);
    for (;;) {
      const index = this.#texts.findIndex(wanted);
      if (index >= 0) return this.#texts.splice(index, 1)[0] as string;
      if (this.#ended) throw new Error('connection ended before the expected message');
      deadline.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      deadline.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      this.#waiting.delete(resolve);
    }
  }

  /** Everything that arrived and nobody took. */
  get pending(): readonly string[] {
    return this.#texts;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  [Symbol.dispose](): void {
    this.#socket.terminate();
  }
}
