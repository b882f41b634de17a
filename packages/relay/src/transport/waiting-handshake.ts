import type { Socket } from 'node:net';
import { missingOfClientHello } from './client-hello.ts';

/** A connection before its handshake: a socket, and the bytes of its ClientHello. */
export class WaitingHandshake {
  readonly socket: Socket;
  /** Stopped when it ends, or its handshake begins. */
  readonly timers = new DisposableStack();
  /** Key of the address, once the ClientHello is there. */
  owner = '';
  /** Whether it was counted in the rate of its address. */
  isCounted = false;
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
