import { frameFlag, windowBytes } from './frame.ts';

/** What the owner of a stream is told; each call is synchronous and must not throw. */
export interface StreamEvents {
  /** Bytes of the peer; {@link YamuxStream.credit} when they are read. */
  data(piece: Uint8Array): void;
  /** The peer sends no more. */
  end(): void;
  /**
   * The stream ended: both sides sent all, or one side reset it.
   *
   * @param dropped bytes of {@link YamuxStream.send} that were not sent
   */
  closed(how: StreamEnd, dropped: number): void;
}

export type StreamEnd = 'finished' | 'reset' | 'peer reset';

/** What a stream needs of its session. */
export interface StreamOutput {
  /** The stream has something to send. */
  ready(stream: YamuxStream): void;
  /** Both sides are done, or the stream was reset. */
  remove(stream: YamuxStream): void;
  /** Sends a frame without payload, before any data that waits. */
  control(flags: number, streamId: number, length: number): void;
}

/** One frame of a stream to send, without its payload. */
export interface OutgoingFrame {
  readonly data: boolean;
  readonly flags: number;
  readonly length: number;
}

/**
 * One stream of a session: windows, order of flags, and bytes that wait for the peer's credit.
 *
 * A frame has at most one flag: js-libp2p before 8.0 compares the whole field with SYN and answers
 * RST to SYN with FIN, which the specification allows.
 */
export class YamuxStream {
  readonly id: number;
  /** Whether this side opened it. */
  readonly isOwn: boolean;
  readonly #output: StreamOutput;
  /** Set by the owner at once after the stream was made. */
  events: StreamEvents | undefined;
  #firstFlag: number;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #sendWindow = windowBytes;
  #receiveWindow = windowBytes;
  /** Read by the owner, not yet given back as credit. */
  #uncredited = 0;
  #finRequested = false;
  #finSent = false;
  #finReceived = false;
  #closed = false;
  /** Counts frames sent; a watchdog compares two values of it. */
  progress = 0;

  constructor(id: number, output: StreamOutput, isOwn: boolean) {
    this.id = id;
    this.isOwn = isOwn;
    this.#output = output;
    this.#firstFlag = isOwn ? frameFlag.syn : frameFlag.ack;
  }

  /** Whether bytes or the end wait for the peer. */
  get isSending(): boolean {
    return !this.#closed && (this.#waitingBytes > 0 || (this.#finRequested && !this.#finSent));
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether the peer has credit left. */
  get canReceive(): boolean {
    return !this.#closed && !this.#finReceived && this.#receiveWindow > 0;
  }

  /** Queues bytes; they must not change until they are sent. Ignored after the end or a reset. */
  send(bytes: Uint8Array): void {
    if (this.#closed || this.#finRequested) return;
    if (bytes.length > 0) {
      this.#waiting.push(bytes);
      this.#waitingBytes += bytes.length;
    }
    this.#output.ready(this);
  }

  /** Ends this side after the bytes that wait. */
  finish(): void {
    if (this.#closed || this.#finRequested) return;
    this.#finRequested = true;
    this.#output.ready(this);
  }

  /** Ends both sides at once; what waits is dropped. */
  reset(): void {
    if (this.#closed) return;
    // A stream that the peer has not heard of needs no RST.
    if (this.#firstFlag !== frameFlag.syn) this.#output.control(frameFlag.rst, this.id, 0);
    this.close('reset');
  }

  /** Gives the peer credit for bytes that were read; half a window at a time. */
  credit(bytes: number): void {
    if (this.#closed || this.#finReceived) return;
    this.#uncredited += bytes;
    if (this.#uncredited < windowBytes / 2) return;
    this.#output.control(this.#takeFirstAck(), this.id, this.#uncredited);
    this.#receiveWindow += this.#uncredited;
    this.#uncredited = 0;
  }

  /** Whether the peer may send so many bytes; takes them off its window. */
  admit(bytes: number): boolean {
    if (bytes > this.#receiveWindow) return false;
    this.#receiveWindow -= bytes;
    return true;
  }

  receive(piece: Uint8Array): void {
    if (!this.#closed && !this.#finReceived) this.events?.data(piece);
  }

  /** Adds the peer's credit. Returns `false` if the window would exceed 2^32-1 bytes. */
  grow(bytes: number): boolean {
    this.#sendWindow += bytes;
    if (this.#sendWindow > 0xffff_ffff) return false;
    if (this.#waitingBytes > 0 && bytes > 0) this.#output.ready(this);
    return true;
  }

  receiveEnd(): void {
    if (this.#closed || this.#finReceived) return;
    this.#finReceived = true;
    this.events?.end();
    if (this.#finSent) this.close('finished');
  }

  receiveReset(): void {
    this.close('peer reset');
  }

  /** Ends the stream without a frame, also when the connection is lost. */
  close(how: StreamEnd): void {
    if (this.#closed) return;
    this.#closed = true;
    const dropped = this.#waitingBytes;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.events?.closed(how, dropped);
    this.#output.remove(this);
  }

  /** Whether {@link nextFrame} would return a frame. */
  get canSend(): boolean {
    if (this.#closed) return false;
    if (this.#waitingBytes > 0) return this.#sendWindow > 0 || this.#firstFlag !== 0;
    return this.#firstFlag !== 0 || (this.#finRequested && !this.#finSent);
  }

  /**
   * Returns the next frame and appends its payload to `parts`.
   *
   * @param room bytes of payload the frame may have
   */
  nextFrame(room: number, parts: Uint8Array[]): OutgoingFrame | undefined {
    if (!this.canSend) return undefined;
    const length = Math.min(this.#waitingBytes, this.#sendWindow, room);
    const flags = this.#firstFlag;
    if (length > 0) {
      this.#take(length, parts);
      this.#firstFlag = 0;
      this.progress += 1;
      return { data: true, flags, length };
    }
    if (this.#waitingBytes > 0 && flags === 0) return undefined;
    this.progress += 1;
    if (flags !== 0) {
      this.#firstFlag = 0;
      return { data: false, flags, length: 0 };
    }
    this.#finSent = true;
    if (this.#finReceived) this.close('finished');
    return { data: false, flags: frameFlag.fin, length: 0 };
  }

  #take(length: number, parts: Uint8Array[]): void {
    this.#sendWindow -= length;
    this.#waitingBytes -= length;
    let left = length;
    while (left > 0) {
      const head = this.#waiting[0] as Uint8Array;
      if (head.length <= left) {
        parts.push(head);
        this.#waiting.shift();
        left -= head.length;
      } else {
        parts.push(head.subarray(0, left));
        this.#waiting[0] = head.subarray(left);
        left = 0;
      }
    }
  }

  #takeFirstAck(): number {
    if (this.#firstFlag !== frameFlag.ack) return 0;
    this.#firstFlag = 0;
    return frameFlag.ack;
  }
}
