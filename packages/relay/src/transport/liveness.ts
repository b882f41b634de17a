import type { WebSocket } from 'ws';
import type { RelayContext } from '../context.ts';
import { slowestPeer } from './request-bytes.ts';

/** Bytes of a ping, which its pong repeats: a peer that reads nothing cannot guess them. */
const pingLength = 8;

export interface LivenessParts {
  readonly context: Pick<RelayContext, 'clock' | 'random'>;
  readonly socket: Pick<WebSocket, 'ping'>;
  /** Returns the bytes of all messages that were sent so far. */
  readonly sentBytes: () => number;
  /** Called if the peer does not answer a ping. */
  readonly dead: () => void;
}

/**
 * Pings the peer of one WebSocket. A ping arrives after the messages that were sent before it, so a
 * peer has longer to answer it if they are large.
 */
export class Liveness {
  readonly #parts: LivenessParts;
  /** The ping that the peer has not answered. */
  #ping: { readonly data: Buffer; readonly sentBytes: number; readonly dueAt: number } | undefined;
  /** Bytes sent before the last ping that the peer answered: it has read them. */
  #readBytes = 0;

  constructor(parts: LivenessParts) {
    this.#parts = parts;
  }

  /** Pings the peer; if the ping before was not answered in time, the peer is dead. */
  check(): void {
    const { context, socket, sentBytes, dead } = this.#parts;
    const now = context.clock.monotonic();
    if (this.#ping !== undefined) {
      if (now >= this.#ping.dueAt) dead();
      return;
    }
    const data = Buffer.from(context.random(pingLength));
    const sent = sentBytes();
    const dueAt = now + (sent - this.#readBytes) / slowestPeer;
    this.#ping = { data, sentBytes: sent, dueAt };
    socket.ping(data);
  }

  /** Handles a pong; one that was not asked for says nothing. */
  pong(data: Buffer): void {
    if (this.#ping?.data.equals(data) !== true) return;
    this.#readBytes = this.#ping.sentBytes;
    this.#ping = undefined;
  }

  /** Asks for no answer to the last ping: the answer cannot be read now. */
  forgive(): void {
    this.#ping = undefined;
  }
}
