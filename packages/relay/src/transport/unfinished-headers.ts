import type { IncomingMessage } from 'node:http';
import { GatheredChunks } from './gathered-chunks.ts';
import { HeaderDeadline, type HeaderDeadlineParts } from './header-deadline.ts';

/** Ends headers, and a body of chunks. */
const emptyLine = Buffer.from('\r\n\r\n');

/**
 * Follows on one HTTP connection whether what was parsed ended in the midst of headers, and gives them their time. A
 * new connection has as long for the first byte.
 */
export class UnfinishedHeaders implements Disposable {
  readonly #deadline: HeaderDeadline;
  /** The request whose headers came last. */
  #request: IncomingMessage | undefined;
  #isUnfinished = false;

  constructor(parts: HeaderDeadlineParts) {
    this.#deadline = new HeaderDeadline(parts);
    this.#deadline.start();
  }

  /** Notes that the headers of a request are whole. */
  end(request: IncomingMessage): void {
    this.#request = request;
    this.#isUnfinished = false;
    this.#deadline.stop();
  }

  /**
   * Parses a piece; time begins if it ends in the midst of headers.
   *
   * @param parse returns whether the connection goes on: it has no time while Node's parser waits for the peer to take
   *   an answer
   */
  watch(piece: Uint8Array, parse: () => boolean): void {
    const last = this.#request;
    const wasComplete = last?.complete === true;
    const bytes = bytesOf(last);
    const goesOn = parse();
    const request = this.#request;
    if (request === undefined) {
      if (!this.#isUnfinished) this.#deadline.stop();
      this.#isUnfinished = true;
    } else if (request.complete) {
      const isSame = request === last;
      const isAfter = isSame && wasComplete;
      this.#isUnfinished = isAfter || !isEnd(piece, request, isSame ? bytes : 0);
    }
    if (goesOn) this.goOn();
  }

  /** Begins the time of headers that are unfinished, if it has not begun. */
  goOn(): void {
    if (this.#isUnfinished) this.#deadline.start();
  }

  [Symbol.dispose](): void {
    this.#deadline[Symbol.dispose]();
  }
}

/**
 * Whether a request that ended in a piece ends with it, as far as is seen: an empty line comes before a body, or after
 * one that has chunks.
 *
 * @param bytes of its body before the piece
 */
function isEnd(piece: Uint8Array, request: IncomingMessage, bytes: number): boolean {
  const hasLength = request.headers['content-length'] !== undefined;
  const end = piece.length - (hasLength ? bytesOf(request) - bytes : 0);
  const before = piece.subarray(Math.max(0, end - emptyLine.length), Math.max(0, end));
  return emptyLine.subarray(emptyLine.length - before.length).equals(before);
}

function bytesOf(request: IncomingMessage | undefined): number {
  return (request && GatheredChunks.of(request)?.bytes) ?? 0;
}
