import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import { Queue } from '../queue.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { divideEnds } from './divided-ends.ts';
import { GatheredChunks } from './gathered-chunks.ts';
import { UnfinishedHeaders } from './unfinished-headers.ts';

/** Bytes that Node's parser gets at once: some 290 of the smallest requests, or 1,300 chunks of one byte. */
const bytesOfPiece = 8_192;

export interface ParsedPiecesParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: ByteAccounts;
  /** Whose turns are taken until the headers of a request name another: the connection's address. */
  readonly owner: ByteOwner;
  /** Whether the connection is a proxy's, which pays for no records: it has those of its clients. */
  readonly isProxy: boolean;
  readonly socket: Duplex;
  /** Called if the headers of a request do not arrive in time. */
  readonly late: () => void;
}

/** Bytes around a chunk that its price pays for; of more, so many count as one chunk. */
const bytesOfChunk = 32;

/** Bytes that are dropped of a connection after its last request. */
const mostDropped = 1_048_576;

/** Thrown to Node's parser, which then parses no more of a piece. */
const parsingEnded = new Error('parsing ended');

const ofSocket = new WeakMap<Duplex, ParsedPieces>();

/**
 * Gives what arrives on one HTTP connection to Node's parser in pieces, in turns of its address (02 §18). Node would parse
 * all that the system gave at once, up to 64 KiB: thousands of requests, or of chunks, of each connection that is ready.
 *
 * What waits is held for the owner, and no more is received meanwhile. What Node reads alone has its price here: many
 * small records, and what follows the headers without being a body (extensions of chunks, and trailers).
 */
export class ParsedPieces {
  readonly #parts: ParsedPiecesParts;
  #owner: ByteOwner;
  readonly #push: Duplex['push'];
  readonly #read: Duplex['_read'];
  readonly #records: GatheredChunks;
  readonly #hold: ByteHold;
  readonly #rest = new Queue<Buffer>();
  /** Bytes of the first chunk that were taken. */
  #offset = 0;
  /** Bytes around chunks that are not counted yet. */
  #extra = 0;
  /** Bytes of records that were paid for. */
  #paidBytes = 0;
  readonly #parser: ((piece: Buffer) => void)[];
  /** Whether a step waits for its turn, or is under way. */
  #isRunning = false;
  /** Whether the stream has room for more. */
  #isAsked = false;
  #hasEnded = false;
  /** Whether what arrives is dropped. */
  #isStopped = false;
  #dropped = 0;
  #isReleased = false;
  #debt: Disposable | undefined;
  /** The request whose headers came last. */
  #request: IncomingMessage | undefined;
  /** Bytes of its body that may still be parsed. */
  #bodyLeft = Number.POSITIVE_INFINITY;
  readonly #headers: UnfinishedHeaders;
  /** When what arrives is dropped no longer; monotonic milliseconds. */
  #dropsUntil = 0;

  /** Divides what Node's server reads from now on; it must listen already. */
  constructor(parts: ParsedPiecesParts) {
    this.#parts = parts;
    const { context, bytes, owner, socket, late: expired } = parts;
    this.#owner = owner;
    this.#headers = new UnfinishedHeaders({ context, bytes, owner, expired });
    ofSocket.set(socket, this);
    this.#hold = bytes.received.openYielding(owner, () => void socket.destroy());
    divideEnds({ socket, turns: bytes.dueTurns, owner: payerKey(owner) });
    this.#push = socket.push.bind(socket);
    this.#read = socket._read.bind(socket);
    socket.push = (chunk: Buffer | null) => this.#add(chunk);
    socket._read = (size) => {
      if (this.#isIdle) this.#read(size);
      else this.#isAsked = true;
    };
    // Node's own listener does this, which is gone with its reading of the system.
    socket.on('resume', () => {
      if (this.#isHeldBack) {
        socket.pause();
        return;
      }
      this.#headers.goOn();
      this.#goOn();
    });
    socket.once('close', () => this.#clear());
    this.#records = new GatheredChunks(socket);
    this.#records.readBy({ waiting: () => {}, many: () => this.#payRecords() });
    this.#parser = socket.listeners('data') as ((piece: Buffer) => void)[];
    socket.removeAllListeners('data');
    // With a listener of another, Node does not read from the system without the stream.
    socket.on('data', this.#execute);
  }

  /** Returns what divides a connection, if it is divided. */
  static of(socket: Duplex): ParsedPieces | undefined {
    return ofSocket.get(socket);
  }

  /**
   * Notes that the headers of a request were parsed: it has a price of its own.
   *
   * @param owner whose it is, as far as the headers say
   */
  begin(request: IncomingMessage, owner: ByteOwner): void {
    this.#request = request;
    this.#bodyLeft = Number.POSITIVE_INFINITY;
    this.#headers.end(request);
    this.#owner = owner;
    this.moveTo(owner);
    this.#records.takeCount();
    this.#paidBytes = this.#records.bytes;
    this.#extra = 0;
  }

  /** Holds what waits for another owner, until the next request begins. */
  moveTo(owner: ByteOwner): void {
    const { kind, id } = this.#hold.owner;
    if (kind === owner.kind && id === owner.id) return;
    if (!this.#hold.moveTo(owner)) this.#parts.socket.destroy();
  }

  /**
   * Ends the connection if more than so many bytes follow of a request's body: it is answered. Its stream may not show
   * them: Node drops a body of which nothing was read before the answer.
   */
  boundBody(request: IncomingMessage, bytes: number): void {
    // After a body that is whole, another request may be under way.
    if (request === this.#request) this.#bodyLeft = bytes;
  }

  /** Ends the parsing of the piece under way if nothing of it is read any more; called in a listener of the parser. */
  endParsing(): void {
    if (this.#isStopped || this.#parts.socket.destroyed) throw parsingEnded;
  }

  /** Parses nothing more. For a while, what arrives is dropped and charged; it is not received once its owner owes. */
  stop(): void {
    const { clock, limits } = this.#parts.context;
    if (!this.#isStopped) this.#dropsUntil = clock.monotonic() + limits.requestTimeout;
    this.#isStopped = true;
    this.#clear();
  }

  /** Divides nothing any more; returns what was not parsed. */
  release(): Buffer {
    this.#isReleased = true;
    this.#parts.socket.off('data', this.#execute);
    const rest: Buffer[] = [];
    while (this.#rest.size > 0) rest.push(this.#takePiece());
    this.#clear();
    this.#records.takeCount();
    if (this.#hasEnded) setImmediate(() => this.#push(null));
    return Buffer.concat(rest);
  }

  get #isIdle(): boolean {
    return this.#isReleased || (this.#rest.size === 0 && this.#debt === undefined);
  }

  get #mayGoOn(): boolean {
    if (this.#rest.size === 0 || this.#debt !== undefined || this.#isHeldBack) return false;
    return this.#parts.socket.readableFlowing === true;
  }

  /** Whether Node reads no request until the peer has taken an answer; its parser must get nothing then. */
  get #isHeldBack(): boolean {
    return (this.#parts.socket as { readonly _paused?: boolean })._paused === true;
  }

  get #mayDrop(): boolean {
    const now = this.#parts.context.clock.monotonic();
    return this.#dropped <= mostDropped && now < this.#dropsUntil;
  }

  #add(chunk: Buffer | null): boolean {
    if (this.#isReleased) return this.#push(chunk);
    if (chunk === null) {
      this.#hasEnded = true;
      return this.#rest.size === 0 && this.#push(null);
    }
    if (this.#isStopped) {
      this.#dropped += chunk.length;
      return this.#charge(chunk.length) === 0 && this.#mayDrop;
    }
    this.#rest.push(chunk);
    this.#goOn();
    const isHeld = this.#rest.size === 0 || this.#hold.add(chunk.length);
    if (!isHeld) this.#parts.socket.destroy();
    return this.#isIdle;
  }

  #goOn(): void {
    if (this.#isRunning || !this.#mayGoOn) return;
    this.#isRunning = true;
    this.#parts.bytes.httpTurns.run(payerKey(this.#owner), () => {
      if (this.#mayGoOn) this.#parse(this.#takePiece());
      this.#isRunning = this.#mayGoOn;
      if (this.#isIdle) this.#readMore();
      return this.#isRunning;
    });
  }

  /** Takes the next piece of what waits; a chunk is held until its last piece is taken. */
  #takePiece(): Buffer {
    const chunk = this.#rest.first as Buffer;
    const start = this.#offset;
    this.#offset += bytesOfPiece;
    if (this.#offset >= chunk.length) {
      this.#offset = 0;
      this.#rest.shift();
      this.#hold.release(chunk.length);
    }
    return chunk.subarray(start, start + bytesOfPiece);
  }

  /** Parses a piece. If all of it belongs to a body, bytes that are none of the body count as chunks of it. */
  #parse(piece: Buffer): void {
    const request = this.#request;
    const body = request?.complete === false ? GatheredChunks.of(request) : undefined;
    const { bytes, chunks } = body ?? { bytes: 0, chunks: 0 };
    this.#push(piece);
    // What follows is another request, of another client if a proxy sends it.
    if (this.#request?.complete === true) this.#ownAgain();
    else if (request === this.#request) this.#bodyLeft -= piece.length;
    if (this.#bodyLeft < 0) this.#parts.socket.destroy();
    if (body === undefined || request !== this.#request || request?.complete === true) return;
    const around = bytesOfChunk * (body.chunks - chunks);
    this.#extra = Math.max(0, this.#extra + piece.length - (body.bytes - bytes) - around);
    const count = Math.floor(this.#extra / bytesOfChunk);
    this.#extra -= count * bytesOfChunk;
    if (count > 0) body.count(count);
  }

  #ownAgain(): void {
    this.#owner = this.#parts.owner;
    this.moveTo(this.#owner);
  }

  readonly #execute = (piece: Buffer): void => {
    this.#records.take(piece.length);
    this.#headers.watch(piece, () => {
      try {
        for (const parse of this.#parser) parse.call(this.#parts.socket, piece);
      } catch (error) {
        if (error !== parsingEnded) throw error;
      }
      return !this.#isHeldBack;
    });
  };

  #readMore(): void {
    if (this.#hasEnded) this.#push(null);
    else if (this.#isAsked) {
      this.#isAsked = false;
      this.#read(this.#parts.socket.readableHighWaterMark);
    }
  }

  #payRecords(): void {
    const least = this.#records.takeCount() * this.#parts.context.limits.recordCharge;
    const wait = this.#charge(Math.max(0, least - this.#records.bytes + this.#paidBytes));
    this.#paidBytes = this.#records.bytes;
    if (wait === 0 || this.#debt !== undefined) return;
    const { bytes, owner } = this.#parts;
    this.#debt = bytes.debts.wait(owner, wait, () => {
      this.#debt = undefined;
      this.#goOn();
      if (this.#isIdle) this.#readMore();
    });
  }

  #charge(count: number): number {
    const { bytes, owner, isProxy } = this.#parts;
    return count === 0 || isProxy ? 0 : bytes.charge(owner, count);
  }

  #clear(): void {
    this.#debt?.[Symbol.dispose]();
    this.#debt = undefined;
    while (this.#rest.shift() !== undefined);
    this.#hold[Symbol.dispose]();
    this.#headers[Symbol.dispose]();
  }
}
