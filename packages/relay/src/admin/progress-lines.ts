/** Answers that take long: lines of progress, then the result, for callers that read such lines. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { ProgressState } from '@posthouse/protocol/progress';
import type { RelayContext } from '../context.ts';

/** One JSON object a line. */
export const linesType = 'application/x-ndjson';
/** Milliseconds until the first line, and between two: a caller notices a lost connection. */
const interval = 1_000;
/** Milliseconds for which a caller may read none of the items that were written. */
const mostUnread = 5_000;

/**
 * Writes a line a second while a verb is under way, if its caller accepts lines: `{"progress": ...}`,
 * `{}` if there is nothing new. A quick verb is answered without lines.
 */
export class ProgressLines implements Disposable {
  readonly #clock: Pick<RelayContext['clock'], 'after'>;
  readonly #response: ServerResponse;
  /** Whether the caller accepts lines. */
  readonly #isAccepted: boolean;
  #state: ProgressState | undefined;
  #timer: Disposable | undefined;

  constructor(
    { headers }: IncomingMessage,
    response: ServerResponse,
    clock: Pick<RelayContext['clock'], 'after'>,
  ) {
    this.#response = response;
    this.#clock = clock;
    this.#isAccepted = (headers.accept ?? '').includes(linesType);
    if (this.#isAccepted) this.#wait();
  }

  /** Writes items of a large result as lines `{"item": ...}`; `undefined` if the caller accepts none. */
  get emit(): ((items: readonly JsonObject[]) => Promise<void>) | undefined {
    return this.#isAccepted ? (items) => this.#writeItems(items) : undefined;
  }

  /** Takes how far the verb is. */
  readonly show = (state: ProgressState): void => {
    this.#state = state;
  };

  /** Answers with the last line; returns false if no line was written. */
  end(answer: { readonly status: number; readonly value: JsonObject }): boolean {
    this[Symbol.dispose]();
    if (!this.#response.headersSent) return false;
    this.#response.end(`${JSON.stringify(answer)}\n`);
    return true;
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }

  #wait(): void {
    this.#timer = this.#clock.after(interval, () => {
      if (this.#response.destroyed) return;
      const progress = this.#state;
      this.#state = undefined;
      this.#write(progress === undefined ? {} : { progress });
      this.#wait();
    });
  }

  /** Returns whether the caller has room for more. */
  #write(line: object): boolean {
    if (!this.#response.headersSent) {
      this.#response.writeHead(200, { 'content-type': linesType, 'cache-control': 'no-store' });
    }
    return this.#response.write(`${JSON.stringify(line)}\n`);
  }

  /** @throws ProtocolError if the caller is gone, or reads nothing for a while */
  async #writeItems(items: readonly JsonObject[]): Promise<void> {
    const response = this.#response;
    if (response.destroyed) throw gone();
    let hasRoom = true;
    for (const item of items) hasRoom = this.#write({ item });
    if (hasRoom) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const closed = () => reject(gone());
    response.once('drain', resolve).once('close', closed);
    using _timer = this.#clock.after(mostUnread, () => {
      reject(new ProtocolError('temporarily_unavailable', 'the caller reads nothing'));
      response.destroy();
    });
    try {
      await promise;
    } finally {
      response.off('drain', resolve).off('close', closed);
    }
  }
}

const gone = () => new ProtocolError('temporarily_unavailable', 'the caller is gone');
