import type { WebSocket } from 'ws';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { CallTurns } from '../dispatch/call-turns.ts';
import { ArrivalDeadline } from './arrival-deadline.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { FrameMeter, type FrameReading } from './frame-meter.ts';
import { FrameTurns } from './frame-turns.ts';

export interface IncomingParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: ByteAccounts;
  /** Whom bytes are charged to until the connection is bound. */
  readonly owner: ByteOwner;
  readonly socket: Pick<WebSocket, 'pause' | 'resume'>;
  /** Turns in which what has arrived is read. */
  readonly turns: CallTurns;
  /** Gives bytes to the WebSocket library. */
  readonly read: (bytes: Uint8Array) => void;
  /** Called if the owner or the process has too many bytes of unanswered requests. */
  readonly refused: () => void;
  /** Called if a message stays unfinished for too long. */
  readonly tooSlow: () => void;
}

/**
 * Accounts for what arrives on one WebSocket, byte by byte (02 §18): charges it to its owner and pauses
 * reading while the owner is in debt, holds what is unfinished or waits for its turn, and bounds how
 * long a message may be unfinished.
 */
export class IncomingBytes implements Disposable {
  readonly #parts: IncomingParts;
  readonly #meter: FrameMeter;
  readonly #unfinished: ByteHold;
  readonly #unread: ByteHold;
  /** Of what arrived after the pause. */
  readonly #late: ByteHold;
  readonly #turns: FrameTurns;
  readonly #deadline: ArrivalDeadline;
  #owner: ByteOwner;
  #pause: Disposable | undefined;
  readonly #pauseReceiving = (seconds: number) => this.#receiveNothing(seconds);
  /** Resolved when frames that arrived may be read again. */
  #framesResumed: PromiseWithResolvers<void> | undefined;
  /** Whether too much waits for its turn. */
  #isFull = false;
  /** Whether all is received, whatever the owner owes. */
  #isFree = false;

  constructor(parts: IncomingParts) {
    this.#parts = parts;
    this.#owner = parts.owner;
    this.#meter = new FrameMeter(parts.context.limits.frameCharge);
    this.#unfinished = this.holdRequest();
    this.#unread = this.holdRequest();
    this.#late = parts.bytes.received.openYielding(parts.owner, parts.refused);
    this.#turns = new FrameTurns({
      ...{ ...parts, hold: this.#unread },
      payer: () => payerKey(this.#owner),
      charge: (charge) => {
        const wait = parts.bytes.charge(this.#owner, charge);
        if (wait > 0) this.pause(wait);
      },
      pause: () => this.#framesResumed?.promise,
      filled: (isFull) => {
        this.#isFull = isFull;
        if (isFull) this.#stopReading();
        else {
          this.#charge(0);
          this.#goOn();
        }
      },
    });
    this.#deadline = new ArrivalDeadline({
      context: parts.context,
      bytes: parts.bytes,
      owner: () => this.#owner,
      period: parts.context.limits.unfinishedMessageTimeout,
      hasSession: () => this.#owner.kind === 'account',
      expired: parts.tooSlow,
    });
    this.#startReceiving();
  }

  /** Whom bytes are charged to. */
  get owner(): ByteOwner {
    return this.#owner;
  }

  /** Whether nothing is read: the owner is in debt, or too much waits. */
  get isPaused(): boolean {
    return this.#pause !== undefined || this.#isFull;
  }

  /** Opens a hold for a request that is complete, until it is answered. */
  holdRequest(): ByteHold {
    return this.#parts.bytes.received.open(this.#owner, this.#parts.refused);
  }

  /**
   * Accounts for the next bytes; the WebSocket library reads them in turns of the owner.
   *
   * @param chunks in which they arrived: each one costs a least, except that a frame pays for the one it ends in
   */
  receive(chunk: Uint8Array, chunks = 1): void {
    const reading = this.#meter.read(chunk);
    // What the library has of a message stays in memory until the last frame is read.
    const earlier = reading.hasEnded ? this.#unfinished.bytes : 0;
    const isHeld = this.#hold(chunk.length, reading) && this.#turns.add(chunk, reading, earlier);
    const least = (chunks - reading.ends.length) * this.#parts.context.limits.recordCharge;
    const charge = reading.ends.length > 0 ? chunk.length : reading.charge;
    if (isHeld) this.#charge(Math.max(charge, least));
    else this.#parts.refused();
  }

  /** Holds bytes that arrived while nothing is read, or fewer if some were read. */
  hold(bytes: number): void {
    if (bytes < 0) this.#late.release(-bytes);
    else if (!this.#isFree && !this.#late.add(bytes)) this.#parts.refused();
  }

  /** Charges and holds for another owner from now on. */
  moveTo(owner: ByteOwner): void {
    this.#stopReceiving();
    this.#owner = owner;
    // What the owner before owes is no concern of this one.
    if (this.#pause !== undefined) {
      this.#pause[Symbol.dispose]();
      this.#pause = undefined;
      this.#goOn();
    }
    this.#startReceiving();
    const holds = [this.#unfinished, this.#unread, this.#late];
    if (!holds.every((hold) => hold.moveTo(owner))) this.#parts.refused();
  }

  /**
   * Receives nothing, and reads no frame that has arrived, for so many seconds; longer if the owner is
   * still in debt.
   */
  pause(seconds: number): void {
    if (this.#isFree) return;
    this.#framesResumed ??= Promise.withResolvers();
    this.#receiveNothing(seconds);
  }

  /** Reads to the end, whatever the owner owes. */
  readToEnd(): void {
    this.#isFree = true;
    this.#stopReceiving();
    this.#pause?.[Symbol.dispose]();
    this.#pause = undefined;
    this.#goOn();
  }

  [Symbol.dispose](): void {
    this.#isFree = true;
    this.#stopReceiving();
    this.#pause?.[Symbol.dispose]();
    this.#turns[Symbol.dispose]();
    this.#resumeFrames();
    this.#deadline[Symbol.dispose]();
    this.#unfinished[Symbol.dispose]();
    this.#late[Symbol.dispose]();
  }

  /** Holds the whole chunk if a part of it is unfinished: the part keeps the chunk in memory. */
  #hold(length: number, { hasEnded, isUnfinished, frames }: FrameReading): boolean {
    if (hasEnded || !isUnfinished) this.#endMessage();
    if (!isUnfinished) return true;
    if (!this.isPaused) this.#deadline.start();
    this.#deadline.receive(length);
    const { chunkCharge } = this.#parts.context.limits;
    return this.#unfinished.add(length + chunkCharge * (1 + frames));
  }

  #endMessage(): void {
    this.#deadline.reset();
    this.#unfinished[Symbol.dispose]();
  }

  /** Receives nothing for so many seconds, and longer if the owner is in debt then. */
  #receiveNothing(seconds: number): void {
    if (this.#pause !== undefined || this.#isFree) return;
    this.#stopReading();
    this.#pause = this.#parts.bytes.debts.wait(this.#owner, seconds, () => {
      this.#pause = undefined;
      this.#goOn();
    });
  }

  #resumeFrames(): void {
    this.#framesResumed?.resolve();
    this.#framesResumed = undefined;
  }

  /** Lets the owner's other connections pause this one, after a turn: what has arrived is read in it. */
  #startReceiving(): void {
    const owner = this.#owner;
    setImmediate(() => {
      if (this.isPaused || this.#isFree || this.#owner !== owner) return;
      this.#parts.bytes.receivers.add(owner, this.#pauseReceiving);
    });
  }

  #stopReceiving(): void {
    this.#parts.bytes.receivers.delete(this.#owner, this.#pauseReceiving);
  }

  #stopReading(): void {
    this.#stopReceiving();
    this.#parts.socket.pause();
    // The peer cannot go on, so its time does not run.
    this.#deadline.pause();
  }

  #goOn(): void {
    if (this.#pause === undefined) this.#resumeFrames();
    if (this.isPaused) return;
    if (this.#unfinished.bytes > 0) this.#deadline.start();
    this.#parts.socket.resume();
    this.#startReceiving();
  }

  /** Backpressure holds messages back while the owner is in debt; none is lost while the connection lives. */
  #charge(charge: number): void {
    const wait = this.#parts.bytes.charge(this.#owner, charge);
    if (wait > 0) this.#receiveNothing(wait);
  }
}
