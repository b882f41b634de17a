import { PeerError } from '../errors.ts';
import {
  encodeHeader,
  type FrameHeader,
  FrameParser,
  type FrameSink,
  frameFlag,
  frameType,
  goAwayCode,
  headerBytes,
  windowBytes,
} from './frame.ts';
import { type StreamOutput, YamuxStream } from './stream.ts';

/** Bytes of one write: the plaintext of one Noise message. */
const batchBytes = 65_519;
/** Where each batch is put together; it is encrypted before the next one. */
const batch = Buffer.alloc(batchBytes);
/** Payload of one frame if several streams have something to send, so that they take turns. */
const sharedFrameBytes = 16_384;
/** Highest stream ID. */
const maxStreamId = 0xffff_ffff;

/** Bytes of data, by the side that opened the stream. */
export interface SentBytes {
  own: number;
  peer: number;
}

/** The ordered, encrypted bytes below a session. */
interface SessionOutput {
  /** No write should be made until the owner calls {@link YamuxSession.flush}. */
  readonly isBlocked: boolean;
  /**
   * @param plaintext overwritten after the call
   * @param data the part of the plaintext that is data of streams
   */
  write(plaintext: Buffer, data: SentBytes): void;
}

export interface SessionOptions {
  /** The dialling side; its streams have odd IDs. */
  readonly client: boolean;
  readonly output: SessionOutput;
  /** Frames without data that may wait to be sent. */
  readonly controlFrames: number;
  /** Sets `events` of a stream the peer opened and returns `true`, or refuses it with `false`. */
  accept(stream: YamuxStream): boolean;
  /** The peer opens and accepts no more streams. */
  goneAway(code: number): void;
  /** The number of streams has fallen to zero. */
  idle(): void;
  /** Schedules a flush: once for all that is written until then. */
  readonly schedule?: (flush: () => void) => void;
  /** The ID to begin with, for tests. */
  readonly firstStreamId?: number;
}

/**
 * Yamux on one connection: many streams with a window each (07 §B2). Synchronous: bytes in, bytes
 * out; it has no timers.
 */
export class YamuxSession implements FrameSink, StreamOutput {
  readonly #options: SessionOptions;
  readonly #parser = new FrameParser(this);
  readonly #streams = new Map<number, YamuxStream>();
  /** Streams that may have something to send, in the order of their turns. */
  readonly #ready = new Set<YamuxStream>();
  readonly #controls: Buffer[] = [];
  #nextStreamId: number;
  #scheduled = false;
  #closed = false;
  #flushing = false;
  #becameIdle = false;
  #refusing = false;
  #remoteGone = false;
  /** The stream of the data frame being read, what is left of it, and whether it ends the stream. */
  #current: YamuxStream | undefined;
  #currentLeft = 0;
  #currentEnds = false;
  #pingValue = 0;
  #pingPending = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#nextStreamId = options.firstStreamId ?? (options.client ? 1 : 2);
  }

  /** Open streams, of both sides. */
  get streams(): ReadonlyMap<number, YamuxStream> {
    return this.#streams;
  }

  /** Whether this side may open another stream. */
  get canOpen(): boolean {
    return !this.#closed && !this.#remoteGone && !this.#refusing && !this.isExhausted;
  }

  /** Whether the stream IDs of this side are used up; only a new connection helps. */
  get isExhausted(): boolean {
    return this.#nextStreamId > maxStreamId;
  }

  /** Opens a stream; the peer learns of it with its first bytes. @throws PeerError `closed` */
  open(): YamuxStream {
    if (!this.canOpen) throw new PeerError('closed', 'the connection opens no more streams');
    const stream = new YamuxStream(this.#nextStreamId, this, true);
    this.#nextStreamId += 2;
    this.#streams.set(stream.id, stream);
    return stream;
  }

  /**
   * Reads decrypted bytes.
   *
   * @param most frames that are read
   * @returns how many bytes were read
   * @throws PeerError `protocol` if the peer broke a rule; the owner then closes the connection
   */
  receive(bytes: Buffer, most?: number): number {
    return this.#closed ? bytes.length : this.#parser.receive(bytes, most);
  }

  /** Sends a ping. Returns `false` if the one before it was not answered. */
  ping(): boolean {
    if (this.#pingPending) return false;
    this.#pingPending = true;
    this.#pingValue = (this.#pingValue + 1) >>> 0;
    this.#queue({
      type: frameType.ping,
      flags: frameFlag.syn,
      streamId: 0,
      length: this.#pingValue,
    });
    return true;
  }

  /** Announces that this side opens and accepts no more streams. */
  goAway(code: number = goAwayCode.normal): void {
    if (this.#closed || this.#refusing) return;
    this.#refusing = true;
    this.#queue({ type: frameType.goAway, flags: 0, streamId: 0, length: code });
  }

  /** Ends all streams without frames; the connection is lost or about to close. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams.values()]) stream.close('reset');
    this.#ready.clear();
    this.#controls.length = 0;
  }

  /** Writes what waits, as long as the output accepts it. */
  flush(): void {
    this.#scheduled = false;
    this.#flushing = true;
    while (!this.#closed && !this.#options.output.isBlocked && this.#writeBatch());
    this.#flushing = false;
    if (!this.#closed && this.#becameIdle) this.#reportIdle();
  }

  /** Not during a flush: the last frame of the last stream must be written first. */
  #reportIdle(): void {
    this.#becameIdle = this.#flushing;
    if (!this.#flushing && this.#streams.size === 0) this.#options.idle();
  }

  /** Writes one batch; returns whether there was something to write. */
  #writeBatch(): boolean {
    const parts: Uint8Array[] = [];
    let size = 0;
    const data: SentBytes = { own: 0, peer: 0 };
    const controls = this.#controls.splice(0, Math.floor(batchBytes / headerBytes));
    parts.push(...controls);
    size += controls.length * headerBytes;
    for (const stream of this.#ready) {
      const room = batchBytes - size - headerBytes;
      if (room <= 0) break;
      this.#ready.delete(stream);
      const at = parts.push(noHeader) - 1;
      const share = this.#ready.size > 0 ? Math.min(room, sharedFrameBytes) : room;
      const frame = stream.nextFrame(share, parts);
      if (frame === undefined) {
        parts.length = at;
        continue;
      }
      parts[at] = encodeHeader({
        type: frame.data ? frameType.data : frameType.windowUpdate,
        flags: frame.flags,
        streamId: stream.id,
        length: frame.length,
      });
      size += headerBytes + frame.length;
      data[stream.isOwn ? 'own' : 'peer'] += frame.length;
      if (stream.canSend) this.#ready.add(stream);
    }
    if (size === 0) return false;
    let offset = 0;
    for (const part of parts) {
      batch.set(part, offset);
      offset += part.length;
    }
    this.#options.output.write(batch.subarray(0, size), data);
    return true;
  }

  // What streams ask for.

  ready(stream: YamuxStream): void {
    this.#ready.add(stream);
    this.#schedule();
  }

  remove(stream: YamuxStream): void {
    this.#streams.delete(stream.id);
    this.#ready.delete(stream);
    if (this.#streams.size === 0) this.#reportIdle();
  }

  control(flags: number, streamId: number, length: number): void {
    this.#queue({ type: frameType.windowUpdate, flags, streamId, length });
  }

  #queue(header: FrameHeader): void {
    if (this.#closed) return;
    this.#controls.push(encodeHeader(header));
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    (this.#options.schedule ?? setImmediate)(() => this.flush());
  }

  // What the parser finds.

  header(header: FrameHeader): void {
    this.#current = undefined;
    this.#currentLeft = 0;
    if (this.#controls.length > this.#options.controlFrames) {
      throw new PeerError('protocol', 'yamux: the peer reads no answers to its frames');
    }
    if (header.type === frameType.ping) this.#receivePing(header);
    else if (header.type === frameType.goAway) this.#receiveGoAway(header.length);
    else this.#receiveStreamFrame(header);
  }

  payload(piece: Uint8Array): void {
    this.#currentLeft -= piece.length;
    const stream = this.#current;
    stream?.receive(piece);
    if (this.#currentLeft === 0 && this.#currentEnds) stream?.receiveEnd();
  }

  #receivePing({ flags, length }: FrameHeader): void {
    if ((flags & frameFlag.syn) !== 0) {
      this.#queue({ type: frameType.ping, flags: frameFlag.ack, streamId: 0, length });
    } else if ((flags & frameFlag.ack) !== 0 && length === this.#pingValue) {
      this.#pingPending = false;
    }
  }

  #receiveGoAway(code: number): void {
    this.#remoteGone = true;
    this.#options.goneAway(code);
  }

  #receiveStreamFrame(header: FrameHeader): void {
    const { type, flags, streamId, length } = header;
    if (streamId === 0) throw new PeerError('protocol', 'yamux: data for the session itself');
    if (type === frameType.data && length > windowBytes) {
      throw new PeerError('protocol', 'yamux: a frame exceeds the largest window');
    }
    if ((flags & frameFlag.syn) !== 0) this.#receiveSyn(streamId);
    const stream = this.#streams.get(streamId);
    this.#current = stream;
    this.#currentLeft = type === frameType.data ? length : 0;
    this.#currentEnds = (flags & frameFlag.fin) !== 0;
    if (stream === undefined) return;
    if ((flags & frameFlag.rst) !== 0) {
      this.#current = undefined;
      stream.receiveReset();
    } else if (type === frameType.windowUpdate) {
      if (!stream.grow(length)) throw new PeerError('protocol', 'yamux: window over 2^32-1 bytes');
    } else if (!stream.admit(length)) {
      throw new PeerError('protocol', 'yamux: a frame exceeds the window');
    }
    if (this.#currentEnds && this.#currentLeft === 0) stream.receiveEnd();
  }

  #receiveSyn(streamId: number): void {
    const ofPeer = streamId % 2 === (this.#options.client ? 0 : 1);
    if (!ofPeer) throw new PeerError('protocol', 'yamux: the peer used a stream ID of this side');
    if (this.#streams.has(streamId)) throw new PeerError('protocol', 'yamux: repeated SYN');
    const stream = new YamuxStream(streamId, this, false);
    this.#streams.set(streamId, stream);
    if (this.#refusing || !this.#options.accept(stream)) {
      this.#streams.delete(streamId);
      this.control(frameFlag.rst, streamId, 0);
    }
  }
}

/** Stands for a header until the length of its frame is known. */
const noHeader = new Uint8Array(0);
