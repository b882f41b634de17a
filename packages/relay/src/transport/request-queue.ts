import type { RelayContext } from '../context.ts';
import { answerBytes } from './answer-bytes.ts';
import type { ByteHold } from './byte-ledger.ts';

export interface RequestQueueParts {
  readonly context: Pick<RelayContext, 'limits'>;
  /** Returns the bytes that wait for the peer. */
  readonly waitingBytes: () => number;
}

export interface QueuedRequest {
  readonly method: string;
  /** Bytes of the request, until it is answered or dropped. */
  readonly hold: ByteHold;
  /** Answers the request; resolves when the answer was given to the socket. */
  readonly start: () => Promise<void>;
}

/**
 * Starts the requests of one WebSocket in their order, while there is room for their answers: a peer
 * that asks for many pages at once gets all of them, as fast as it reads (02 §18).
 */
export class RequestQueue implements Disposable {
  readonly #parts: RequestQueueParts;
  readonly #waiting: QueuedRequest[] = [];
  /** Bytes that the answers of requests under way may have. */
  #reserved = 0;

  constructor(parts: RequestQueueParts) {
    this.#parts = parts;
  }

  /** Starts a request when there is room for its answer. */
  add(request: QueuedRequest): void {
    this.#waiting.push(request);
    this.startNext();
  }

  /** Starts the requests that there is room for; called when the peer has taken something. */
  startNext(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined || !this.#hasRoom(next)) return;
      this.#waiting.shift();
      const expected = this.#expectedBytes(next);
      this.#reserved += expected;
      void this.#answer(next, expected);
    }
  }

  async #answer({ start }: QueuedRequest, expected: number): Promise<void> {
    try {
      await start();
    } finally {
      this.#reserved -= expected;
      this.startNext();
    }
  }

  /** Drops the requests that were not started. */
  [Symbol.dispose](): void {
    for (const { hold } of this.#waiting.splice(0)) hold[Symbol.dispose]();
  }

  /** Half of the buffer stays free: for notifications, and answers that are larger than expected. */
  #hasRoom(request: QueuedRequest): boolean {
    const taken = this.#parts.waitingBytes() + this.#reserved;
    const room = this.#parts.context.limits.sendBufferBytes / 2;
    return taken === 0 || taken + this.#expectedBytes(request) <= room;
  }

  #expectedBytes({ method }: QueuedRequest): number {
    const { limits } = this.#parts.context;
    return limits.messageCharge + answerBytes(limits, method);
  }
}
