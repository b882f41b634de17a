import type { Socket } from 'node:net';
import { addressKey } from '@posthouse/peer';
import type { RelayContext } from '../context.ts';
import { connectionRefused } from '../observability/events.ts';
import { Rotation } from '../rotation.ts';
import type { ClientAddresses } from './client-addresses.ts';
import { missingOfClientHello } from './client-hello.ts';
import { Pace } from './pace.ts';

export interface HandshakesParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;
  readonly clients: ClientAddresses;
  /** Begins the TLS handshake of a connection, whose first message has arrived. */
  readonly begin: (socket: Socket) => void;
}

/**
 * Begins TLS handshakes, each about half a millisecond of the event loop: one in each turn of the
 * loop, so many in a second, in rotation of the addresses, each of which has a rate of its own
 * (02 §18). Until then a connection is a socket and the bytes of its ClientHello.
 */
export class Handshakes implements Disposable {
  readonly #parts: HandshakesParts;
  readonly #ofAddress: Pace;
  readonly #ofProcess: Pace;
  readonly #ready = new Rotation<Waiting>();
  readonly #waiting = new Set<Waiting>();
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
  }

  /** Begins the handshake of a new connection when it may; ends the connection if that takes too long. */
  add(socket: Socket): void {
    const { context } = this.#parts;
    const { clock, limits } = context;
    const deadline = clock.after(limits.requestTimeout, () => socket.destroy());
    const waiting = new Waiting(socket, limits.clientHelloBytes, () => this.#arrived(waiting));
    this.#waiting.add(waiting);
    socket.once('close', () => this.#left(waiting));
    waiting.timers.use(deadline);
  }

  /** Ends the connections that wait. */
  [Symbol.dispose](): void {
    for (const { socket } of [...this.#waiting]) socket.destroy();
  }

  /** Gives a connection whose ClientHello is there its place, by the rate of its address. */
  #arrived(waiting: Waiting): void {
    const { context, clients } = this.#parts;
    const { clock, limits } = context;
    const { socket, timers } = waiting;
    const { remoteAddress = '' } = socket;
    const owner = addressKey(remoteAddress);
    const ready = () => {
      this.#ready.add(owner, waiting);
      this.#beginNext();
    };
    // All clients of a proxy have its address.
    if (clients.isProxy(remoteAddress)) {
      ready();
      return;
    }
    const wait = this.#ofAddress.wait(owner);
    if (wait > limits.requestTimeout) {
      connectionRefused(context, 'too many new connections of one address');
      socket.destroy();
      return;
    }
    this.#ofAddress.take(owner);
    waiting.paidBy = owner;
    if (wait === 0) ready();
    else timers.use(clock.after(wait, ready));
  }

  /** Gives the place of a connection that ends before its handshake back to its address. */
  #left(waiting: Waiting): void {
    const isBegun = !this.#waiting.delete(waiting);
    if (!isBegun && waiting.paidBy !== undefined) this.#ofAddress.refund(waiting.paidBy);
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
    if (waiting !== undefined) {
      this.#ofProcess.take('');
      this.#waiting.delete(waiting);
      waiting.leave();
      this.#parts.begin(waiting.socket);
    }
    setImmediate(goOn);
  }

  #takeOpen(): Waiting | undefined {
    for (;;) {
      const waiting = this.#ready.take();
      if (waiting === undefined || !waiting.socket.destroyed) return waiting;
    }
  }
}

/** A connection before its handshake. */
class Waiting {
  readonly socket: Socket;
  /** Stopped when it ends, or its handshake begins. */
  readonly timers = new DisposableStack();
  /** The address of whose rate it was counted. */
  paidBy: string | undefined;
  readonly #most: number;
  readonly #arrived: () => void;
  #bytes: Buffer = Buffer.alloc(0);
  /** Bytes with which they are looked at again: never, once a ClientHello is there. */
  #lookAt = 1;

  /** @param most bytes of a ClientHello */
  constructor(socket: Socket, most: number, arrived: () => void) {
    this.socket = socket;
    this.#most = most;
    this.#arrived = arrived;
    socket.on('readable', this.#read);
    socket.on('error', this.#end);
    socket.once('close', this.#close);
  }

  /** Gives the socket back as it was when it came. */
  leave(): void {
    const { socket } = this;
    socket.off('readable', this.#read);
    socket.off('error', this.#end);
    socket.off('close', this.#close);
    this.timers.dispose();
    socket.unshift(this.#bytes);
  }

  readonly #read = () => {
    const piece = this.socket.read() as Buffer | null;
    if (piece === null) {
      // Readable with nothing to read: the peer ended.
      this.#end();
      return;
    }
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    if (this.#bytes.length > this.#most) this.#end();
    else if (this.#bytes.length >= this.#lookAt) this.#look();
  };

  /** Looks at what has arrived, seldom: it may arrive byte by byte, in records of one byte. */
  #look(): void {
    const missing = missingOfClientHello(this.#bytes);
    const { length } = this.#bytes;
    if (missing === undefined || length + missing > this.#most) {
      this.#end();
      return;
    }
    this.#lookAt = missing === 0 ? Number.POSITIVE_INFINITY : length + missing;
    if (missing === 0) this.#arrived();
  }

  readonly #end = () => void this.socket.destroy();

  readonly #close = () => this.timers.dispose();
}
