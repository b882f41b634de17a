/** Frames of DHT and relay RPC streams: the length as a varint, then the message (07 §B6, §C2). */
import { concatBytes } from '../encoding/bytes.ts';
import { decodeVarint, encodeVarint } from '../encoding/varint.ts';
import { limits } from '../limits.ts';

/**
 * Encodes a frame of a DHT or relay RPC stream: the length as a varint, then the message (07 §B6,
 * §C2).
 *
 * @example
 * encodeFrame(new Uint8Array([7])); // Uint8Array [1, 7]
 */
export function encodeFrame(message: Uint8Array): Uint8Array {
  return concatBytes(encodeVarint(BigInt(message.length)), message);
}

/**
 * Why a stream of frames cannot be read any further:
 * - `invalid`: a length prefix that breaks V2 or V3 of 01 §5.6;
 * - `too-large`: a valid prefix above the reader's maximum;
 * - `truncated`: the stream ended inside a frame (V4).
 *
 * The receiver closes or resets the stream and sends no answer.
 */
export type FrameFault = 'invalid' | 'too-large' | 'truncated';

/** A stream whose frames cannot be read. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
  readonly fault: FrameFault;

  constructor(fault: FrameFault) {
    super(`frame is ${fault}`);
    this.fault = fault;
  }
}

/** First size of the buffer of a frame that arrives in parts. It grows with what has arrived. */
const firstBuffer = 1_024;

/**
 * Reads the frames of one stream from chunks of any size. A frame that lies inside one chunk is a
 * view of the chunk; one that arrives in several is copied into a buffer that grows as bytes arrive,
 * so a prefix alone reserves no memory. At most one frame is buffered.
 *
 * @example
 * const reader = new FrameReader(limits.dhtMessageBytes);
 * for (const frame of reader.push(bytes)) console.log(frame.length);
 * reader.end();
 */
export class FrameReader {
  readonly #maximum: number;
  /** The bytes of an incomplete length prefix. */
  #prefix: Uint8Array = new Uint8Array();
  /** The incomplete frame: its length and the first `filled` bytes, in a buffer that may be longer. */
  #length: number | undefined;
  #buffer: Uint8Array = new Uint8Array();
  #filled = 0;
  #fault: FrameFault | undefined;

  /** @param maximum greatest length of a frame in bytes, without its prefix */
  constructor(maximum: number) {
    this.#maximum = maximum;
  }

  /** Whether the last chunk ended between two frames, or nothing arrived yet. */
  get isBetweenFrames(): boolean {
    return this.#prefix.length === 0 && this.#length === undefined;
  }

  /**
   * Yields the frames that a chunk completes, in order. The next chunk may be pushed when the
   * iteration has ended; if it is left early, the rest of the chunk is lost. An empty chunk is
   * allowed, and so is an empty frame.
   *
   * @throws FrameError `invalid` or `too-large`, after the frames before the fault; from then on
   * every call throws it again
   */
  *push(chunk: Uint8Array): Generator<Uint8Array, void, void> {
    let rest = chunk;
    for (;;) {
      if (this.#fault !== undefined) throw new FrameError(this.#fault);
      if (this.#length === undefined) {
        if (rest.length === 0) return;
        rest = this.#readPrefix(rest);
        if (this.#length === undefined) return;
      }
      const missing: number = this.#length - this.#filled;
      const part = rest.subarray(0, missing);
      rest = rest.subarray(missing);
      if (part.length < missing) {
        this.#append(part, this.#length);
        return;
      }
      yield this.#complete(part);
    }
  }

  /**
   * Checks that the stream may end here.
   *
   * @throws FrameError `truncated` inside a frame or a prefix; the earlier fault, if there was one
   */
  end(): void {
    if (this.#fault !== undefined) throw new FrameError(this.#fault);
    if (!this.isBetweenFrames) throw this.#fail('truncated');
  }

  /** Reads a length prefix, possibly begun in an earlier chunk, and returns what follows it. */
  #readPrefix(rest: Uint8Array): Uint8Array {
    const before = this.#prefix.length;
    // No more of the chunk is copied than a prefix can have.
    const bytes =
      before === 0
        ? rest
        : concatBytes(this.#prefix, rest.subarray(0, limits.varintBytes - before));
    const read = decodeVarint(bytes);
    if (read === 'invalid') throw this.#fail('invalid');
    if (read === 'incomplete') {
      this.#prefix = bytes.slice();
      return rest.subarray(rest.length);
    }
    if (read.value > BigInt(this.#maximum)) throw this.#fail('too-large');
    this.#prefix = new Uint8Array();
    this.#length = Number(read.value);
    return rest.subarray(read.length - before);
  }

  #append(part: Uint8Array, length: number): void {
    const filled = this.#filled + part.length;
    if (filled > this.#buffer.length) {
      const grown = new Uint8Array(Math.min(length, Math.max(firstBuffer, 2 * filled)));
      grown.set(this.#buffer.subarray(0, this.#filled));
      this.#buffer = grown;
    }
    this.#buffer.set(part, this.#filled);
    this.#filled = filled;
  }

  #complete(part: Uint8Array): Uint8Array {
    let frame = part;
    if (this.#filled > 0) {
      this.#append(part, this.#filled + part.length);
      frame = this.#buffer.subarray(0, this.#filled);
    }
    this.#length = undefined;
    this.#buffer = new Uint8Array();
    this.#filled = 0;
    return frame;
  }

  #fail(fault: FrameFault): FrameError {
    this.#fault = fault;
    this.#buffer = new Uint8Array();
    return new FrameError(fault);
  }
}
