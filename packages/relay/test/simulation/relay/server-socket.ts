/** A WebSocket of the relay on a simulated connection, as far as the relay uses one. */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { ConnectionEnd } from '../machine/network.ts';
import type { Scheduler } from '../machine/scheduler.ts';

/** Marks of what is no text. */
const ping = '\u0000ping ';
const pong = '\u0000pong ';

/** What the relay's transport gets for a connection. */
export interface ServerSocket {
  readonly socket: WebSocket;
  readonly stream: Duplex;
}

/** Answers to a ping if the text is one; the client's end calls it for everything that arrives. */
export function pongTo(text: string): string | undefined {
  return text.startsWith(ping) ? pong + text.slice(ping.length) : undefined;
}

/** Makes the relay's side of a connection. */
export function serverSocket(end: ConnectionEnd, scheduler: Scheduler): ServerSocket {
  const stream = new SimulatedStream();
  const socket = new SimulatedSocket(end, { stream, scheduler });
  return { socket: socket as unknown as WebSocket, stream: stream as unknown as Duplex };
}

/** The bytes that the relay meters before the WebSocket library reads them. */
class SimulatedStream extends EventEmitter {
  /** What arrives is announced as data, and nothing waits in a buffer. */
  readonly readableFlowing = true;
  readonly readableHighWaterMark = 65_536;
  readonly readableLength = 0;

  push(): boolean {
    return true;
  }

  _read(): void {}

  read(): null {
    return null;
  }

  resume(): this {
    return this;
  }

  end(): this {
    return this;
  }

  /** Gathers nothing: here a message travels as a whole, and no write costs anything. */
  cork(): void {}

  uncork(): void {}
}

class SimulatedSocket extends EventEmitter {
  readonly OPEN = 1;
  readonly #end: ConnectionEnd;
  readonly #stream: SimulatedStream;
  readonly #scheduler: Scheduler;
  readonly #unread: string[] = [];
  #isPaused = false;
  readyState = 1;

  constructor(
    end: ConnectionEnd,
    parts: { readonly stream: SimulatedStream; readonly scheduler: Scheduler },
  ) {
    super();
    this.#end = end;
    this.#stream = parts.stream;
    this.#scheduler = parts.scheduler;
    end.received = (text) => {
      this.#unread.push(text);
      this.#read();
    };
    end.closed = () => this.#closed();
  }

  send(message: Buffer, _options: object, sent: () => void): void {
    this.#end.send(message.toString('utf8'));
    this.#scheduler.soon(sent);
  }

  ping(data: Buffer): void {
    this.#end.send(ping + data.toString('latin1'));
  }

  pong(_data: Buffer, _mask: boolean, sent: () => void): void {
    this.#scheduler.soon(sent);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#scheduler.soon(() => this.#read());
  }

  close(): void {
    this.terminate();
  }

  terminate(): void {
    this.#end.close();
    this.#scheduler.soon(() => this.#closed());
  }

  #read(): void {
    while (!this.#isPaused && this.readyState === this.OPEN) {
      const text = this.#unread.shift();
      if (text === undefined) return;
      if (text.startsWith(pong)) {
        this.emit('pong', Buffer.from(text.slice(pong.length), 'latin1'));
        continue;
      }
      const message = Buffer.from(text);
      this.#stream.emit('data', frameOf(message));
      this.emit('message', message, false);
    }
  }

  #closed(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.emit('close');
  }
}

/** A whole text frame of a client, with a mask of zeros (RFC 6455 §5.2). */
function frameOf(message: Buffer): Buffer {
  const { length } = message;
  const mask = Buffer.alloc(4);
  if (length < 126) return Buffer.concat([Buffer.from([0x81, 0x80 | length]), mask, message]);
  const isShort = length < 65_536;
  const size = Buffer.alloc(isShort ? 2 : 8);
  if (isShort) size.writeUInt16BE(length);
  else size.writeBigUInt64BE(BigInt(length));
  return Buffer.concat([Buffer.from([0x81, 0x80 | (isShort ? 126 : 127)]), size, mask, message]);
}
