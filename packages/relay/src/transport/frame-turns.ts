import type { RelayContext } from '../context.ts';
import type { CallTurns } from '../dispatch/call-turns.ts';
import { Queue } from '../queue.ts';
import type { ByteHold } from './byte-ledger.ts';
import type { FrameReading } from './frame-meter.ts';

export interface FrameTurnsParts {
  readonly context: Pick<RelayContext, 'limits'>;
  readonly turns: CallTurns;
  /** Returns whose turns are taken. */
  readonly payer: () => string;
  /** Holds what waits; its owner ends this if it is too much. */
  readonly hold: ByteHold;
  /** Gives bytes to the WebSocket library, which announces the frames that end with them. */
  readonly read: (bytes: Uint8Array) => void;
  /** Charges what a frame that was read costs in addition to its bytes. */
  readonly charge: (bytes: number) => void;
  /** Returns a promise while no frame may be read; it resolves when that is over. */
  readonly pause: () => Promise<void> | undefined;
  /** Called if so much waits that no more may be received, and when that is over. */
  readonly filled: (isFull: boolean) => void;
}

/** Bytes that are held for each frame: where it ends. */
const endBytes = 8;

interface Chunk {
  readonly bytes: Uint8Array;
  /** Where frames end. */
  readonly ends: readonly number[];
  readonly held: number;
  /** What each frame costs in addition to its bytes. */
  readonly charge: number;
}

/**
 * Reads what arrived on one WebSocket, one frame in each turn of its payer (02 §18): a request is
 * decoded and begins in that turn, and what was not decoded waits as the bytes that arrived. A small
 * frame is charged when it is read: those after it wait while its owner is in debt.
 */
export class FrameTurns implements Disposable {
  readonly #parts: FrameTurnsParts;
  /** The chunk of which frames are read, how many were, and where the next one begins. */
  #current: Chunk | undefined;
  #frames = 0;
  #offset = 0;
  readonly #later = new Queue<Chunk>();
  #isFull = false;
  #isDisposed = false;

  constructor(parts: FrameTurnsParts) {
    this.#parts = parts;
  }

  /**
   * Reads a chunk when its turns have come; returns false if too much waits.
   *
   * @param earlier bytes held for the message that ends in the chunk, which stay held as long
   */
  add(bytes: Uint8Array, { ends, charge }: FrameReading, earlier = 0): boolean {
    const { context, hold, read, filled } = this.#parts;
    if (this.#current === undefined && ends.length === 0) {
      read(bytes);
      return true;
    }
    const { chunkCharge, unreadBytes } = context.limits;
    const held = bytes.length + endBytes * ends.length + chunkCharge + earlier;
    if (!hold.add(held)) return false;
    if (!this.#isFull && hold.bytes > unreadBytes) {
      this.#isFull = true;
      filled(true);
    }
    const chunk = { bytes, ends, held, charge: (charge - bytes.length) / (ends.length || 1) };
    if (this.#current !== undefined) {
      this.#later.push(chunk);
      return true;
    }
    this.#current = chunk;
    void this.#readAll();
    return true;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#parts.hold[Symbol.dispose]();
  }

  async #readAll(): Promise<void> {
    while (this.#current !== undefined) {
      const pause = this.#parts.pause();
      if (pause !== undefined) await pause;
      await this.#parts.turns.take(this.#parts.payer());
      if (this.#isDisposed) return;
      this.#readFrame(this.#current);
    }
  }

  /** Reads one frame; what follows the last one of a chunk is read with it. */
  #readFrame({ bytes, ends, held, charge }: Chunk): void {
    const start = this.#offset;
    const isLast = this.#frames + 1 >= ends.length;
    this.#offset = isLast ? bytes.length : (ends[this.#frames] as number);
    this.#frames += 1;
    // A request that was read is held by itself.
    this.#parts.hold.release(isLast ? held - start : this.#offset - start);
    this.#parts.read(bytes.subarray(start, this.#offset));
    if (charge > 0) this.#parts.charge(charge);
    if (isLast && !this.#isDisposed) this.#endChunk();
  }

  #endChunk(): void {
    const { context, hold, read, filled } = this.#parts;
    for (;;) {
      this.#current = this.#later.shift();
      this.#frames = 0;
      this.#offset = 0;
      if (this.#current === undefined || this.#current.ends.length > 0) break;
      // No frame ends in it, so it takes no turn.
      hold.release(this.#current.held);
      read(this.#current.bytes);
    }
    if (!this.#isFull || hold.bytes > context.limits.unreadBytes) return;
    this.#isFull = false;
    filled(false);
  }
}
