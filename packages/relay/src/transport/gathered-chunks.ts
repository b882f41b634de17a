import type { Readable } from 'node:stream';

/** Chunks of this many bytes and more are passed on as they are: few of them fill a stream's buffer. */
const largeChunk = 1_024;
/** Smaller ones of one stream that are passed on as they are in one turn of the event loop. */
const chunksOfTurn = 16;
/** Bytes of the first block that small chunks are copied into. */
const smallestBlock = 1_024;
/** After so many chunks the reader is told at once, in the midst of what the system gave. */
const chunksUntold = 256;
const emptyBlock = Buffer.alloc(0);

/** Who reads a stream, and pays for what arrives. */
export interface ChunkReader {
  /** Called with the bytes that arrive while the stream is paused; with as many below 0 when they are taken. */
  readonly waiting: (bytes: number) => void;
  /** Called when many chunks arrived at once. */
  readonly many?: () => void;
}

/** Counts turns of the event loop in which small chunks arrived. */
class Turns {
  #number = 0;
  #isScheduled = false;

  /** Returns the number of this turn. */
  now(): number {
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#number += 1;
      });
    }
    return this.#number;
  }
}

const turns = new Turns();
const ofStream = new WeakMap<Readable, GatheredChunks>();

/**
 * Bounds what the chunks of one stream cost. A peer may send one byte in each chunk of a body or each record of TLS,
 * and Node makes a buffer of each, of some 200 bytes: a paused stream would keep 65,536 of them, and a reader
 * would be called for each.
 *
 * Small chunks that arrive in one turn of the event loop are gathered and passed on as one at its end, if there are
 * many of them or the stream is paused. A paused stream reads no more from the system at once, and not only when its
 * buffer is full.
 */
export class GatheredChunks {
  readonly #stream: Readable;
  readonly #push: Readable['push'];
  readonly #read: Readable['_read'];
  #block: Buffer = emptyBlock;
  /** Bytes of the block that are used. */
  #length = 0;
  /** The last turn in which small chunks came, and how many of them were passed on as they are. */
  #turn = -1;
  #passed = 0;
  /** Whether the stream has room for more. */
  #isAsked = false;
  /** Chunks that were not taken yet, by `takeCount`. */
  #count = 0;
  #chunks = 0;
  #bytes = 0;
  /** Bytes that arrived while the stream was paused, and were not taken since. */
  #waiting = 0;
  #reader: ChunkReader | undefined;

  /** Gathers the chunks of a stream from now on. */
  constructor(stream: Readable) {
    this.#stream = stream;
    this.#push = stream.push.bind(stream);
    this.#read = stream._read.bind(stream);
    ofStream.set(stream, this);
    // Node gives what it received to `push`; if that returns false, it reads no more until `_read` is called.
    stream.push = (chunk: Buffer | null) => {
      if (chunk !== null) return this.#add(chunk);
      this.#passOn();
      return this.#push(null);
    };
    stream._read = () => {
      this.#isAsked = true;
      this.#readMore();
    };
    stream.on('resume', () => this.#readMore());
    // It may have been stopped before.
    this.#isAsked = true;
    this.#readMore();
  }

  /** Returns what gathers the chunks of a stream, if they are gathered. */
  static of(stream: Readable): GatheredChunks | undefined {
    return ofStream.get(stream);
  }

  /**
   * Tells a reader what arrives, and what waits already; the one before is told that nothing waits for it any more.
   * @returns ends this
   */
  readBy(reader: ChunkReader): Disposable {
    this.#tell(-this.#waiting);
    this.#reader = reader;
    this.#tell(this.#waiting);
    return {
      [Symbol.dispose]: () => {
        if (this.#reader === reader) this.#reader = undefined;
      },
    };
  }

  /** Notes that bytes were taken. */
  take(bytes: number): void {
    const taken = Math.min(bytes, this.#waiting);
    this.#waiting -= taken;
    this.#tell(-taken);
  }

  /** Returns how many chunks arrived since it was asked last. */
  takeCount(): number {
    const count = this.#count;
    this.#count = 0;
    return count;
  }

  /** Chunks that arrived so far. */
  get chunks(): number {
    return this.#chunks;
  }

  /** Bytes that arrived so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts as many chunks more, for bytes that arrived without being a chunk. */
  count(chunks: number): void {
    this.#count += chunks;
    if (this.#count >= chunksUntold) this.#reader?.many?.();
  }

  #tell(bytes: number): void {
    if (bytes !== 0) this.#reader?.waiting(bytes);
  }

  get #isTaken(): boolean {
    return this.#stream.readableFlowing === true;
  }

  #add(chunk: Buffer): boolean {
    this.#chunks += 1;
    this.#bytes += chunk.length;
    this.count(1);
    const isTaken = this.#isTaken;
    if (!isTaken) {
      this.#waiting += chunk.length;
      this.#tell(chunk.length);
    }
    if (chunk.length >= largeChunk) {
      this.#passOn();
      return this.#push(chunk) && isTaken;
    }
    if (isTaken && this.#length === 0 && this.#mayPass()) return this.#push(chunk);
    this.#gather(chunk);
    return false;
  }

  #mayPass(): boolean {
    const turn = turns.now();
    if (turn !== this.#turn) this.#passed = 0;
    this.#turn = turn;
    this.#passed += 1;
    return this.#passed <= chunksOfTurn;
  }

  #gather(chunk: Buffer): void {
    if (this.#length === 0) setImmediate(() => this.#passOn());
    const length = this.#length + chunk.length;
    if (length > this.#block.length) {
      const block = Buffer.allocUnsafeSlow(Math.max(smallestBlock, 2 * length));
      this.#block.copy(block, 0, 0, this.#length);
      this.#block = block;
    }
    chunk.copy(this.#block, this.#length);
    this.#length = length;
  }

  /** Passes on what was gathered, in one piece that takes no more memory than it has bytes. */
  #passOn(): void {
    if (this.#length === 0) return;
    const piece = Buffer.from(this.#block.subarray(0, this.#length));
    this.#block = emptyBlock;
    this.#length = 0;
    this.#push(piece);
    this.#readMore();
  }

  /** Reads more from the system if what has arrived is taken. */
  #readMore(): void {
    if (!this.#isAsked || !this.#isTaken || this.#length > 0) return;
    this.#isAsked = false;
    this.#read(this.#stream.readableHighWaterMark);
  }
}
