import { encodeVarint } from '@posthouse/protocol';
import { FrameError, FrameReader } from '@posthouse/protocol/federation';
import type { BytePool } from './byte-pool.ts';
import { PeerError } from './errors.ts';
import type { PeerLimits } from './limits.ts';
import type { Proposal } from './multistream.ts';
import { PieceQueue } from './piece-queue.ts';
import type { Slots } from './slots.ts';
import { windowBytes } from './yamux/frame.ts';
import type { StreamEnd, YamuxStream } from './yamux/stream.ts';

/** What a stream needs of its connection. */
export interface StreamHost {
  /** Bytes held for this peer. */
  readonly inbound: BytePool;
  readonly outbound: BytePool;
  /** For own streams: those that send more than a small request. */
  readonly largeStreams?: Slots;
  readonly limits: Pick<PeerLimits, 'frameBytes' | 'smallRequestBytes'>;
  closed(stream: PeerStream): void;
}

/**
 * One stream of an agreed protocol. It must be read to its end, ended and so closed, or reset;
 * until then its bytes count for the peer.
 */
export class PeerStream implements AsyncIterable<Uint8Array> {
  readonly protocol: string;
  readonly #host: StreamHost;
  readonly #yamux: YamuxStream;
  readonly #pieces = new PieceQueue();
  /** Bytes of `#pieces`, and of frames that were read or begun; both count in the host's pool. */
  #unread = 0;
  #framed = 0;
  /** Of the piece read last: it may have the beginning of the next frame. */
  #lastPiece = 0;
  /** Read and not given back as credit; credit given whose bytes have not come, counted too. */
  #uncredited = 0;
  #reserved = 0;
  /** Bytes written since the last answer, and whether the stream is one of the host's large ones. */
  #written = 0;
  #isLarge = false;
  #proposal: Proposal | undefined;
  readonly #agreed = Promise.withResolvers<void>();
  #frames: FrameReader | undefined;
  /** Bytes that arrived so far. */
  #received = 0;
  #expectsEnd = false;
  #completed: Generator<Uint8Array, void, void> | undefined;
  #ended = false;
  #endedHere = false;
  #discarding = false;
  #closed = false;
  #error: unknown;
  #wake: (() => void) | undefined;
  #controller: AbortController | undefined;

  /** @param proposal of the side that opens the stream; its reply is read first */
  constructor(protocol: string, yamux: YamuxStream, host: StreamHost, proposal?: Proposal) {
    this.protocol = protocol;
    this.#yamux = yamux;
    this.#host = host;
    this.#proposal = proposal;
    yamux.events = {
      data: (piece) => this.#receive(piece),
      end: () => this.#receiveEnd(),
      closed: (how, dropped) => this.#finish(how, dropped),
    };
    this.#agreed.promise.catch(() => {});
    if (proposal !== undefined) this.#send(proposal.request);
    else this.#agreed.resolve();
  }

  /** Resolves once the peer agreed on the protocol. @throws PeerError `not_supported` or `reset` */
  get agreed(): Promise<void> {
    return this.#agreed.promise;
  }

  /** Aborts when the stream is reset or its connection lost. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#error !== undefined) this.#controller.abort(this.#error);
    return this.#controller.signal;
  }

  /** Whether bytes or the end of this side wait to be sent. */
  get isSending(): boolean {
    return this.#yamux.isSending;
  }

  /**
   * Counters of what the peer should move: bytes that it has not taken, the rest of a frame that it
   * has begun. Each is `undefined` if it is not the peer's turn.
   */
  get awaited(): { readonly sent: number | undefined; readonly received: number | undefined } {
    const isInFrame = this.#frames?.isBetweenFrames === false;
    const isPeersTurn = isInFrame && this.#wake !== undefined && this.#yamux.canReceive;
    return {
      sent: this.isSending ? this.#yamux.progress : undefined,
      received: isPeersTurn ? this.#received : undefined,
    };
  }

  /** Whether both sides have ended, or one has reset the stream. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /**
   * Reads the next bytes; `undefined` at the peer's end. One read at a time.
   *
   * @throws PeerError `reset`, `closed`, `not_supported` or `protocol`
   */
  read(): Promise<Uint8Array | undefined> {
    return this.#take(false);
  }

  /**
   * Reads the next frame (07 §B6, §C2); `undefined` if the peer ended its side between frames. Its
   * bytes count for the peer until the next call, or until the stream is closed.
   *
   * @throws FrameError for an invalid, oversized or truncated frame; PeerError as `read`
   */
  async readFrame(): Promise<Uint8Array | undefined> {
    this.#frames ??= new FrameReader(this.#host.limits.frameBytes);
    this.#releaseFrames();
    for (;;) {
      const next = this.#completed?.next();
      if (next !== undefined && next.done !== true) {
        this.#endRequest();
        return next.value;
      }
      const piece = await this.#take(true);
      if (piece === undefined) {
        this.#frames.end();
        return undefined;
      }
      this.#completed = this.#frames.push(piece);
    }
  }

  /**
   * Expects nothing more of the peer than its end, after the last frame that was read: more bytes,
   * also some that came already, reset the stream with a FrameError `invalid`.
   */
  expectEnd(): void {
    this.#expectsEnd = true;
    if (!this.#pieces.isEmpty || this.#hasBegunFrame()) this.#refuseMore();
  }

  /** Whether bytes followed the last frame in its piece. */
  #hasBegunFrame(): boolean {
    try {
      return this.#completed?.next().done === false || this.#frames?.isBetweenFrames === false;
    } catch {
      return true;
    }
  }

  #refuseMore(): void {
    this.reset(new FrameError('invalid'));
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (let piece = await this.read(); piece !== undefined; piece = await this.read()) {
      yield piece;
    }
  }

  /**
   * Sends bytes; they must not change until the stream is closed. Resolves once they are accepted,
   * which waits while too many bytes are held for the peer, or too many large requests are under way.
   *
   * @throws PeerError `reset` or `closed`
   */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#write(bytes);
  }

  /** Sends one frame: the length as a varint, then the message (07 §B6, §C2). */
  async writeFrame(message: Uint8Array): Promise<void> {
    await this.#write(message, encodeVarint(BigInt(message.length)));
  }

  /** @param prefix sent with the first bytes, so that no frame is begun while its bytes wait */
  async #write(bytes: Uint8Array, prefix?: Uint8Array): Promise<void> {
    // A whole frame has room at once: parts of many frames, each waiting for the rest, would block.
    const { grantable } = this.#host.outbound;
    this.#written += bytes.length;
    if (this.#written > this.#host.limits.smallRequestBytes) await this.#becomeLarge();
    this.#checkWritable();
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += grantable) {
      const part = bytes.subarray(offset, offset + grantable);
      if (!this.#host.outbound.tryAcquire(part.length)) {
        await this.#host.outbound.acquire(part.length, this.signal);
        if (this.#closed || this.#endedHere) this.#host.outbound.release(part.length);
      }
      this.#checkWritable();
      if (offset === 0 && prefix !== undefined) this.#send(prefix);
      this.#yamux.send(part);
    }
  }

  /** Ends this side; what was written is still sent. */
  end(): void {
    this.#endedHere = true;
    this.#yamux.finish();
  }

  /** Ends both sides at once, and drops what was not read. @param reason what pending reads and writes reject with */
  reset(reason: unknown = new PeerError('reset', 'the stream was reset')): void {
    if (this.#closed) {
      this.discard();
      return;
    }
    this.#error ??= reason;
    this.#yamux.reset();
  }

  /** Drops what was not read and what still comes, for a stream whose handler has returned. */
  discard(): void {
    this.#discarding = true;
    this.#drop();
  }

  #receive(piece: Uint8Array): void {
    if (this.#expectsEnd) {
      this.#refuseMore();
      return;
    }
    if (this.#discarding) return;
    if (this.#proposal === undefined) {
      this.deliver(piece);
      return;
    }
    try {
      const rest = this.#proposal.receive(piece);
      this.#yamux.credit(piece.length - (rest?.length ?? 0));
      if (rest === undefined) return;
      this.#proposal = undefined;
      this.#agreed.resolve();
      this.deliver(rest);
    } catch (error) {
      this.reset(error);
    }
  }

  /** Gives bytes to the reader. The connection passes those that followed a peer's proposal. */
  deliver(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#received += piece.length;
    const fromReserve = Math.min(this.#reserved, piece.length);
    if (!this.#host.inbound.tryAdd(piece.length - fromReserve)) {
      this.reset(new PeerError('limit', 'too many bytes of the peer wait to be read'));
      return;
    }
    this.#reserved -= fromReserve;
    this.#unread += piece.length;
    this.#pieces.push(piece);
    this.#wakeReader();
  }

  #receiveEnd(): void {
    this.#ended = true;
    this.#releaseReserve();
    if (this.#proposal !== undefined) {
      this.reset(new PeerError('reset', 'the peer ended the stream before it agreed'));
    }
    this.#wakeReader();
  }

  #finish(how: StreamEnd, dropped: number): void {
    this.#closed = true;
    this.#releaseReserve();
    this.#host.outbound.release(dropped);
    this.#endRequest();
    if (how === 'finished') {
      this.#host.inbound.release(this.#framed);
      this.#framed = 0;
    } else {
      this.#error ??= new PeerError(
        'reset',
        `the stream was reset by ${how === 'reset' ? 'this side' : 'the peer'}`,
      );
      this.#drop();
      this.#controller?.abort(this.#error);
      this.#agreed.reject(this.#error);
    }
    this.#host.inbound.leave(this);
    this.#wakeReader();
    this.#host.closed(this);
  }

  #drop(): void {
    this.#host.inbound.release(this.#unread + this.#framed);
    this.#unread = 0;
    this.#framed = 0;
    this.#pieces.clear();
    this.#host.inbound.unfavour(this);
  }

  /** Gives back what the frames count that were read before: all but the piece read last. */
  #releaseFrames(): void {
    const done = Math.max(0, this.#framed - this.#lastPiece);
    this.#framed -= done;
    this.#host.inbound.release(done);
    this.#host.inbound.unfavour(this);
  }

  /**
   * Takes the next piece off the queue and gives the peer credit for it.
   *
   * @param keep counts its bytes until the stream is closed
   */
  async #take(keep: boolean): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#error !== undefined) throw this.#error;
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#credit(piece.length);
        this.#unread -= piece.length;
        if (keep && !this.#closed) {
          this.#framed += piece.length;
          this.#lastPiece = piece.length;
        } else {
          this.#host.inbound.release(piece.length);
          this.#host.inbound.unfavour(this);
        }
        return piece;
      }
      if (this.#ended) return undefined;
      if (this.#wake !== undefined) throw new TypeError('the stream is being read already');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Gives credit, half a window at a time, once its bytes have room. */
  #credit(bytes: number): void {
    this.#uncredited += bytes;
    const { inbound } = this.#host;
    const credit = this.#uncredited;
    if (credit < windowBytes / 2 || this.#ended || this.#closed) return;
    this.#uncredited = 0;
    inbound.request(credit, this, () => {
      this.#reserved += credit;
      this.#yamux.credit(credit);
    });
  }

  /** No more bytes come: what was reserved for them is not needed. */
  #releaseReserve(): void {
    this.#host.inbound.withdraw(this);
    this.#host.inbound.release(this.#reserved);
    this.#reserved = 0;
  }

  /** The peer has answered, and so read what was written until now. */
  #endRequest(): void {
    this.#written = 0;
    if (this.#isLarge) this.#host.largeStreams?.give();
    this.#isLarge = false;
  }

  /** Waits for a slot of large streams, which the stream has until the answer or its end. */
  async #becomeLarge(): Promise<void> {
    const { largeStreams } = this.#host;
    if (largeStreams === undefined || this.#isLarge) return;
    this.#checkWritable();
    if (!largeStreams.tryTake()) await largeStreams.take(this.signal);
    if (this.#closed || this.#isLarge) largeStreams.give();
    else this.#isLarge = true;
  }

  #send(bytes: Uint8Array): void {
    this.#host.outbound.add(bytes.length);
    this.#yamux.send(bytes);
  }

  #checkWritable(): void {
    if (this.#error !== undefined) throw this.#error;
    if (this.#endedHere) throw new TypeError('the stream was ended on this side');
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
