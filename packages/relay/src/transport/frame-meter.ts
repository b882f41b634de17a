/** Opcodes of control frames have this bit (RFC 6455 §5.5). */
const controlBit = 0x08;

/** What one chunk of a WebSocket's bytes contained. */
export interface FrameReading {
  /** Bytes to charge: each frame counts at least the smallest charge. */
  readonly charge: number;
  /** Offsets in the chunk at which frames end. */
  readonly ends: readonly number[];
  /** Data frames that began in the chunk after the last complete message. */
  readonly frames: number;
  /** Whether a message ended in the chunk. */
  readonly hasEnded: boolean;
  /** Whether a frame or a message is incomplete after the chunk. */
  readonly isUnfinished: boolean;
}

/**
 * Follows the frames of a WebSocket that a client sends (RFC 6455 §5.2), without their content: the
 * WebSocket library announces messages only when they are complete.
 */
export class FrameMeter {
  readonly #smallestCharge: number;
  readonly #header = new Uint8Array(14);
  readonly #view = new DataView(this.#header.buffer);
  #headerLength = 0;
  #payloadLeft = 0;
  /** Whether the current frame is the last one of a message. */
  #endsMessage = false;
  /** Whether a data message has begun and its last frame has not ended. */
  #isMessageOpen = false;

  /** @param smallestCharge bytes that a frame counts at least */
  constructor(smallestCharge: number) {
    this.#smallestCharge = smallestCharge;
  }

  /** Reads the next bytes of the stream. */
  read(chunk: Uint8Array): FrameReading {
    let charge = chunk.length;
    const ends: number[] = [];
    let frames = 0;
    let hasEnded = false;
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#payloadLeft > 0) {
        const bytes = Math.min(this.#payloadLeft, chunk.length - offset);
        this.#payloadLeft -= bytes;
        offset += bytes;
      } else {
        this.#header[this.#headerLength] = chunk[offset] as number;
        this.#headerLength += 1;
        offset += 1;
        if (this.#headerLength < this.#headerSize()) continue;
        charge += this.#begin();
        frames += 1;
      }
      if (this.#payloadLeft > 0) continue;
      ends.push(offset);
      if (!this.#endsMessage) continue;
      this.#endsMessage = false;
      this.#isMessageOpen = false;
      hasEnded = true;
      frames = 0;
    }
    const isUnfinished = this.#headerLength > 0 || this.#payloadLeft > 0 || this.#isMessageOpen;
    return { charge, ends, frames, hasEnded, isUnfinished };
  }

  /** Length of the header, as far as its first bytes tell: masks are required of clients. */
  #headerSize(): number {
    if (this.#headerLength < 2) return 2;
    const masked = (this.#header[1] as number) & 0x80 ? 4 : 0;
    const length = (this.#header[1] as number) & 0x7f;
    if (length === 127) return 10 + masked;
    return (length === 126 ? 4 : 2) + masked;
  }

  /** Begins the payload of the frame whose header is complete; returns what its charge lacks. */
  #begin(): number {
    const size = this.#headerLength;
    this.#headerLength = 0;
    const length = (this.#header[1] as number) & 0x7f;
    if (length === 127) this.#payloadLeft = Number(this.#view.getBigUint64(2));
    else this.#payloadLeft = length === 126 ? this.#view.getUint16(2) : length;
    const first = this.#header[0] as number;
    if ((first & controlBit) === 0) {
      this.#isMessageOpen = true;
      this.#endsMessage = (first & 0x80) !== 0;
    }
    return Math.max(0, this.#smallestCharge - size - this.#payloadLeft);
  }
}
