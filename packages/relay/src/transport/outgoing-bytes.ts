import { nextTick } from 'node:process';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { RelayContext } from '../context.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { slowestPeer } from './request-bytes.ts';

export interface OutgoingParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: ByteAccounts;
  /** Whose the bytes are until the connection is bound. */
  readonly owner: ByteOwner;
  readonly socket: WebSocket;
  /** What the WebSocket library writes to. */
  readonly stream: Duplex;
  /** Called when the peer has taken something. */
  readonly taken: () => void;
  /** Called if too many bytes wait for the peer, or for too long. */
  readonly tooSlow: () => void;
}

/** Sends on one WebSocket, and accounts for what the peer has not taken (02 §18). */
export class OutgoingBytes implements Disposable {
  readonly #parts: OutgoingParts;
  readonly #waiting: ByteHold;
  /** Messages given to the socket that it has not written. */
  #messages = 0;
  /** When the socket last wrote a message, or the oldest waiting one was given to it. */
  #progressAt = 0;
  /** Bytes of all messages that were given to the socket. */
  #sent = 0;
  #deadline: Disposable | undefined;
  #isGathering = false;
  /** What sends something more before the gathered texts leave. */
  #beforeWrite: (() => void)[] = [];
  #isPongWaiting = false;
  /** Data of the newest ping that waits for an earlier pong. */
  #nextPong: Uint8Array | undefined;

  constructor(parts: OutgoingParts) {
    this.#parts = parts;
    this.#waiting = parts.bytes.waiting.open(parts.owner, parts.tooSlow);
  }

  /** Bytes that wait for the peer, with what their memory costs in addition. */
  get waitingBytes(): number {
    return this.#waiting.bytes;
  }

  /** Bytes of all messages so far. */
  get sentBytes(): number {
    return this.#sent;
  }

  /** Sends a text; `sent` is called when it was written to the network. */
  send(text: string, sent?: () => void): void {
    const { socket, context, tooSlow } = this.#parts;
    if (socket.readyState !== socket.OPEN) return;
    const { limits } = context;
    const message = Buffer.from(text);
    const charge = message.length + limits.messageCharge;
    const isTooMuch = this.#waiting.bytes + message.length > limits.sendBufferBytes;
    if (isTooMuch || !this.#waiting.add(charge)) {
      tooSlow();
      return;
    }
    if (this.#messages === 0) this.#progressAt = context.clock.monotonic();
    this.#messages += 1;
    this.#sent += message.length;
    this.#startDeadline(limits.sendTimeout);
    this.#gather();
    socket.send(message, { binary: false }, () => {
      this.#messages -= 1;
      this.#progressAt = context.clock.monotonic();
      this.#waiting.release(charge);
      sent?.();
      this.#parts.taken();
    });
  }

  /** Calls `work` when the promises of this moment have settled: what it sends leaves with the rest. */
  beforeWrite(work: () => void): void {
    this.#beforeWrite.push(work);
    this.#gather();
  }

  /** Answers a ping; at most one pong waits, and it answers the newest ping (RFC 6455 §5.5.3). */
  pong(data: Uint8Array): void {
    const { socket } = this.#parts;
    if (socket.readyState !== socket.OPEN) return;
    // While it waits, the data would keep the whole chunk it came with in memory, and a pooled copy its pool.
    const own = new Uint8Array(data);
    if (this.#isPongWaiting) {
      this.#nextPong = own;
      return;
    }
    this.#isPongWaiting = true;
    socket.pong(own, false, () => {
      this.#isPongWaiting = false;
      const next = this.#nextPong;
      this.#nextPong = undefined;
      if (next !== undefined) this.pong(next);
    });
  }

  /** Counts the waiting bytes for another owner from now on. */
  moveTo(owner: ByteOwner): void {
    if (!this.#waiting.moveTo(owner)) this.#parts.tooSlow();
  }

  [Symbol.dispose](): void {
    this.#deadline?.[Symbol.dispose]();
    this.#waiting[Symbol.dispose]();
  }

  /** Has what is sent until the promises of this moment have settled leave in one write. */
  #gather(): void {
    if (this.#isGathering) return;
    const { stream } = this.#parts;
    this.#isGathering = true;
    stream.cork();
    nextTick(() => {
      // A work may ask for another one.
      while (this.#beforeWrite.length > 0) for (const work of this.#beforeWrite.splice(0)) work();
      this.#isGathering = false;
      stream.uncork();
    });
  }

  /** Ends the peer if messages wait and none was written for the time allowed. */
  #startDeadline(milliseconds: number): void {
    if (this.#deadline !== undefined) return;
    const { clock } = this.#parts.context;
    this.#deadline = clock.after(milliseconds, () => {
      this.#deadline = undefined;
      // Writes that ended while this process was busy are announced first.
      if (this.#messages > 0) setImmediate(() => this.#checkProgress());
    });
  }

  #checkProgress(): void {
    if (this.#messages === 0) return;
    const { clock, limits } = this.#parts.context;
    const allowed = limits.sendTimeout + this.#waiting.bytes / slowestPeer;
    const left = this.#progressAt + allowed - clock.monotonic();
    if (left > 0) this.#startDeadline(left);
    else this.#parts.tooSlow();
  }
}
