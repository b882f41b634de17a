import type { WebSocket } from 'ws';
import type { RelayContext } from '../context.ts';
import { ArrivalDeadline } from './arrival-deadline.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { FrameMeter, type FrameReading } from './frame-meter.ts';

/** Longest pause before a paused connection is checked again, in seconds. */
const longestPause = 30;

export interface IncomingParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: ByteAccounts;
  /** Whom bytes are charged to until the connection is bound. */
  readonly owner: ByteOwner;
  readonly socket: Pick<WebSocket, 'pause' | 'resume'>;
  /** Called if the owner or the process has too many bytes of unanswered requests. */
  readonly refused: () => void;
  /** Called if a message stays unfinished for too long. */
  readonly tooSlow: () => void;
}

/**
 * Accounts for what arrives on one WebSocket, byte by byte (02 §18): charges it to its owner and pauses
 * reading while the owner is in debt, holds what is unfinished, and bounds how long it may be so.
 */
export class IncomingBytes implements Disposable {
  readonly #parts: IncomingParts;
  readonly #meter: FrameMeter;
  readonly #unfinished: ByteHold;
  readonly #deadline: ArrivalDeadline;
  #owner: ByteOwner;
  #pause: Disposable | undefined;

  constructor(parts: IncomingParts) {
    this.#parts = parts;
    this.#owner = parts.owner;
    this.#meter = new FrameMeter(parts.context.limits.frameCharge);
    this.#unfinished = this.holdRequest();
    this.#deadline = new ArrivalDeadline({
      context: parts.context,
      period: parts.context.limits.unfinishedMessageTimeout,
      hasSession: () => this.#owner.kind === 'account',
      expired: parts.tooSlow,
    });
  }

  /** Whom bytes are charged to. */
  get owner(): ByteOwner {
    return this.#owner;
  }

  /** Whether reading is paused because the owner is in debt. */
  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** Opens a hold for a request that is complete, until it is answered. */
  holdRequest(): ByteHold {
    return this.#parts.bytes.received.open(this.#owner, this.#parts.refused);
  }

  /** Accounts for the next bytes, before the WebSocket library reads them. */
  receive(chunk: Uint8Array): void {
    const reading = this.#meter.read(chunk);
    this.#hold(chunk.length, reading);
    this.#charge(reading.charge);
  }

  /** Charges and holds for another owner from now on. */
  moveTo(owner: ByteOwner): void {
    this.#owner = owner;
    if (!this.#unfinished.moveTo(owner)) this.#parts.refused();
  }

  /** Reads nothing for so many seconds, and longer if the owner is in debt then. */
  pause(seconds: number): void {
    if (this.isPaused) return;
    const { context, socket } = this.#parts;
    socket.pause();
    // The peer cannot go on, so its time does not run.
    this.#deadline.pause();
    this.#pause = context.clock.after(Math.min(seconds, longestPause) * 1_000, () => {
      this.resume();
      this.#charge(0);
    });
  }

  /** Reads on, whatever the owner owes. */
  resume(): void {
    this.#pause?.[Symbol.dispose]();
    this.#pause = undefined;
    if (this.#unfinished.bytes > 0) this.#deadline.start();
    this.#parts.socket.resume();
  }

  [Symbol.dispose](): void {
    this.#pause?.[Symbol.dispose]();
    this.#deadline[Symbol.dispose]();
    this.#unfinished[Symbol.dispose]();
  }

  /** Holds the whole chunk if a part of it is unfinished: the part keeps the chunk in memory. */
  #hold(length: number, { hasEnded, isUnfinished, frames }: FrameReading): void {
    if (hasEnded || !isUnfinished) this.#finish();
    if (!isUnfinished) return;
    if (!this.isPaused) this.#deadline.start();
    this.#deadline.receive(length);
    const { chunkCharge } = this.#parts.context.limits;
    if (this.#unfinished.add(length + chunkCharge * (1 + frames))) return;
    this.#finish();
    this.#parts.refused();
  }

  #finish(): void {
    this.#deadline.reset();
    this.#unfinished[Symbol.dispose]();
  }

  /** Backpressure holds messages back while the owner is in debt; none is lost. */
  #charge(charge: number): void {
    const wait = this.#parts.bytes.spend(this.#owner, charge);
    if (wait > 0) this.pause(wait);
  }
}
