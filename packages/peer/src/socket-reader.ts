import type { Socket } from 'node:net';
import { PeerError } from './errors.ts';

/**
 * Reads a socket piece by piece, as long as nothing else does. No more is buffered than the socket
 * does itself; when the socket is destroyed, the pending read rejects.
 */
export class SocketReader {
  readonly #socket: Socket;
  #lost: PeerError | undefined;
  #wake: (() => void) | undefined;
  readonly #onReadable = () => this.#wakeUp();
  readonly #onError = (cause: Error) => {
    this.#lost ??= new PeerError('closed', cause.message, { cause });
    this.#wakeUp();
  };
  readonly #onEnd = () => {
    this.#lost ??= new PeerError('closed', 'the peer ended the connection');
    this.#wakeUp();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('readable', this.#onReadable);
    socket.on('error', this.#onError);
    socket.on('end', this.#onEnd);
    socket.on('close', this.#onEnd);
  }

  /** Reads what is there, at least one byte. @throws PeerError `closed` */
  readSome(): Promise<Buffer> {
    return this.#read(() => this.#socket.read() as Buffer | null);
  }

  /** Reads so many bytes. @throws PeerError `closed` if fewer come */
  async readExactly(bytes: number): Promise<Buffer> {
    if (bytes === 0) return Buffer.alloc(0);
    const read = await this.#read(() => this.#socket.read(bytes) as Buffer | null);
    if (read.length < bytes) throw new PeerError('closed', 'the peer ended the connection');
    return read;
  }

  /** Puts bytes back that were read too far. */
  unread(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#socket.unshift(bytes);
  }

  /** Stops reading; another reader may begin. */
  release(): void {
    this.#socket.off('readable', this.#onReadable);
    this.#socket.off('end', this.#onEnd);
    this.#socket.off('close', this.#onEnd);
    // The listener for errors stays: without one, an error would end the process.
  }

  async #read(attempt: () => Buffer | null): Promise<Buffer> {
    for (;;) {
      const bytes = attempt();
      if (bytes !== null) return bytes;
      if (this.#lost !== undefined) throw this.#lost;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
