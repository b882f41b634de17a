/** Answers that take long: lines of progress, then the result, for callers that read such lines. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '@posthouse/protocol/json';
import type { ProgressState } from '@posthouse/protocol/progress';
import type { RelayContext } from '../context.ts';

/** One JSON object a line. */
export const linesType = 'application/x-ndjson';
/** Milliseconds until the first line, and between two: a caller notices a lost connection. */
const interval = 1_000;

/**
 * Writes a line a second while a verb is under way, if its caller accepts lines: `{"progress": ...}`,
 * `{}` if there is nothing new. A quick verb is answered without lines.
 */
export class ProgressLines implements Disposable {
  readonly #clock: Pick<RelayContext['clock'], 'after'>;
  readonly #response: ServerResponse;
  #state: ProgressState | undefined;
  #timer: Disposable | undefined;

  constructor(
    { headers }: IncomingMessage,
    response: ServerResponse,
    clock: Pick<RelayContext['clock'], 'after'>,
  ) {
    this.#response = response;
    this.#clock = clock;
    if ((headers.accept ?? '').includes(linesType)) this.#wait();
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
      if (!this.#response.headersSent) {
        this.#response.writeHead(200, { 'content-type': linesType, 'cache-control': 'no-store' });
      }
      const progress = this.#state;
      this.#state = undefined;
      this.#response.write(`${JSON.stringify(progress === undefined ? {} : { progress })}\n`);
      this.#wait();
    });
  }
}
