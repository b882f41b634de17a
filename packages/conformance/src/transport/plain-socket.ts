/** A minimal WebSocket client that sends any message and queues what arrives. */
import { WebSocket } from 'ws';

/** The code and reason with which a connection was closed. */
export interface Closed {
  readonly code: number;
  readonly reason: string;
}

/** One open connection. Incoming texts are queued until `receive` returns them. */
export class PlainSocket implements Disposable {
  readonly #socket: WebSocket;
  readonly #texts: string[] = [];
  readonly #waiting = new Set<() => void>();
  /** Resolves when the connection ends. */
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

  /** Passes every text that arrives from now on to a listener instead of queuing it. */
  listen(listener: (text: string) => void): void {
    this.#listener = listener;
  }

  /** Stops or resumes reading from the network, as a slow client would. */
  pause(paused: boolean): void {
    if (paused) this.#socket.pause();
    else this.#socket.resume();
  }

  /**
   * Waits for the first text that `wanted` accepts; other texts stay queued in order.
   * @throws Error after `timeout` milliseconds, or if the connection ends first
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

  /** Texts that arrived and are still queued. */
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
