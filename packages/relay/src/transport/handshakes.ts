import type { Socket } from 'node:net';
import { addressKey } from '@posthouse/peer';
import type { RelayContext } from '../context.ts';
import { connectionRefused } from '../observability/events.ts';
import { Rotation } from '../rotation.ts';
import type { ClientAddresses } from './client-addresses.ts';
import { Pace } from './pace.ts';
import { UnfinishedHandshakes } from './unfinished-handshakes.ts';
import { WaitingHandshake } from './waiting-handshake.ts';

export interface HandshakesParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;
  readonly clients: ClientAddresses;
  /** Begins the TLS handshake of a connection, whose first message has arrived. */
  readonly begin: (socket: Socket) => void;
}

/** What waits for the rate of one address. */
interface Held {
  /** The newest last; never empty. */
  readonly stack: WaitingHandshake[];
  /** Begins the newest. */
  readonly timer: Disposable;
}

/**
 * Begins TLS handshakes, each about half a millisecond of the event loop: one in each turn of the
 * loop, so many in a second, in rotation of the addresses, each of which has a rate of its own
 * (02 §18). Until then a connection is a socket and the bytes of its ClientHello.
 *
 * Of one address the newest begins first, and if too many wait, the oldest ends: a crowd that opens
 * more than its address may does not make its neighbours wait for all of it.
 */
export class Handshakes implements Disposable {
  readonly #parts: HandshakesParts;
  readonly #ofAddress: Pace;
  readonly #ofProcess: Pace;
  readonly #held = new Map<string, Held>();
  readonly #ready = new Rotation<WaitingHandshake>();
  readonly #waiting = new Set<WaitingHandshake>();
  readonly #unfinished: UnfinishedHandshakes;
  /** Whether the next handshake is on its way. */
  #isPaced = false;

  constructor(parts: HandshakesParts) {
    this.#parts = parts;
    const { clock, limits } = parts.context;
    this.#ofAddress = new Pace({
      ...{ rate: limits.addressHandshakeRate, burst: limits.addressHandshakeBurst },
      ...{ clock, keys: limits.rememberedCallers },
    });
    const { handshakeRate: rate, handshakeBurst: burst } = limits;
    this.#ofProcess = new Pace({ rate, burst, clock, keys: 1 });
    this.#unfinished = new UnfinishedHandshakes(parts.context);
  }

  /** Begins the handshake of a new connection when it may; ends the connection if that takes too long. */
  add(socket: Socket): void {
    const { context } = this.#parts;
    const { clock, limits } = context;
    const deadline = clock.after(limits.requestTimeout, () => socket.destroy());
    const waiting = new WaitingHandshake(socket, limits.clientHelloBytes, () =>
      this.#arrived(waiting),
    );
    this.#waiting.add(waiting);
    socket.once('close', () => this.#left(waiting));
    waiting.timers.use(deadline);
  }

  /** Notes that the handshake of a connection is over; takes any socket of the connection. */
  finished(socket: Socket): void {
    this.#unfinished.delete(socket);
  }

  /** Ends the connections that wait. */
  [Symbol.dispose](): void {
    for (const { socket } of [...this.#waiting]) socket.destroy();
  }

  /** Gives a connection whose ClientHello is there its place, by the rate of its address. */
  #arrived(waiting: WaitingHandshake): void {
    const { context, clients } = this.#parts;
    const { remoteAddress = '' } = waiting.socket;
    const owner = addressKey(remoteAddress);
    waiting.owner = owner;
    const held = this.#held.get(owner);
    // All clients of a proxy have its address.
    if (clients.isProxy(remoteAddress)) this.#addReady(waiting);
    else if (held === undefined && this.#ofAddress.wait(owner) === 0) this.#count(waiting);
    else if (held === undefined) this.#hold(owner, [waiting]);
    else {
      const { stack } = held;
      stack.push(waiting);
      if (stack.length <= context.limits.addressHandshakesWaiting) return;
      connectionRefused(context, 'too many new connections of one address');
      stack.shift()?.socket.destroy();
    }
  }

  /** Keeps connections of an address until the next of them may begin. */
  #hold(owner: string, stack: WaitingHandshake[]): void {
    const timer = this.#parts.context.clock.after(this.#ofAddress.wait(owner), () => {
      const newest = stack.pop();
      this.#held.delete(owner);
      if (newest !== undefined) this.#count(newest);
      if (stack.length > 0) this.#hold(owner, stack);
    });
    this.#held.set(owner, { stack, timer });
  }

  /** Counts a connection for its address, and begins its handshake after those of other addresses. */
  #count(waiting: WaitingHandshake): void {
    this.#ofAddress.take(waiting.owner);
    waiting.isCounted = true;
    this.#addReady(waiting);
  }

  #addReady(waiting: WaitingHandshake): void {
    this.#ready.add(waiting.owner, waiting);
    this.#beginNext();
  }

  /** Gives the place of a connection that ends before its handshake back to its address. */
  #left(waiting: WaitingHandshake): void {
    if (!this.#waiting.delete(waiting)) return;
    const { owner } = waiting;
    if (waiting.isCounted) this.#ofAddress.refund(owner);
    const held = this.#held.get(owner);
    const place = held?.stack.indexOf(waiting) ?? -1;
    if (held === undefined || place === -1) return;
    held.stack.splice(place, 1);
    if (held.stack.length > 0) return;
    held.timer[Symbol.dispose]();
    this.#held.delete(owner);
  }

  /** Begins the next handshake, and sees to the one after it in the next turn of the loop. */
  #beginNext(): void {
    if (this.#isPaced || this.#ready.isEmpty) return;
    const wait = this.#ofProcess.wait('');
    this.#isPaced = true;
    const goOn = () => {
      this.#isPaced = false;
      this.#beginNext();
    };
    if (wait > 0) {
      this.#parts.context.clock.after(wait, goOn);
      return;
    }
    const waiting = this.#takeOpen();
    if (waiting !== undefined) this.#begin(waiting);
    setImmediate(goOn);
  }

  #begin(waiting: WaitingHandshake): void {
    const { socket, owner, isCounted } = waiting;
    this.#ofProcess.take('');
    this.#waiting.delete(waiting);
    waiting.leave();
    this.#unfinished.add(socket, isCounted ? owner : undefined);
    this.#parts.begin(socket);
  }

  #takeOpen(): WaitingHandshake | undefined {
    for (;;) {
      const waiting = this.#ready.take();
      if (waiting === undefined || !waiting.socket.destroyed) return waiting;
    }
  }
}
