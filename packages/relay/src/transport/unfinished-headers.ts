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
  /** The request whose headers came last, and the bytes of its body that were parsed. */
  #request: IncomingMessage | undefined;
  #bodyBytes = 0;
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
    const goesOn = parse();
    const request = this.#request;
    if (request === undefined) {
      if (!this.#isUnfinished) this.#deadline.stop();
      this.#isUnfinished = true;
    } else {
      const before = request === last ? this.#bodyBytes : 0;
      if (request.complete) {
        const isAfter = request === last && wasComplete;
        this.#isUnfinished = isAfter || !isEnd(piece, bodyLength(request) - before);
      }
      // Node counts none of a body that it drops after the answer: all of a later piece belongs to it.
      this.#bodyBytes = request === last ? before + piece.length : bytesOf(request);
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
 * @param body bytes at the end of the piece that are its body, if it says how long that is
 */
function isEnd(piece: Uint8Array, body: number): boolean {
  const end = Math.max(0, piece.length - body);
  const before = piece.subarray(Math.max(0, end - emptyLine.length), end);
  return emptyLine.subarray(emptyLine.length - before.length).equals(before);
}

/** Returns the length of a body that says how long it is. */
function bodyLength({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? 0);
}

function bytesOf(request: IncomingMessage): number {
  return GatheredChunks.of(request)?.bytes ?? 0;
}
