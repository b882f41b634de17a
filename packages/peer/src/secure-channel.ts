import type { Socket } from 'node:net';
import { PeerError } from './errors.ts';
import { tagBytes } from './noise/cipher.ts';
import type { NoiseKeys } from './noise/handshake.ts';

/** Bytes before each message that say its length. */
const prefixBytes = 2;
/** Ciphertexts up to this are copied into one buffer with their prefix and tag. */
const copiedBytes = 4_096;

/** What the owner of a channel is told. */
export interface ChannelEvents {
  /** Decrypted bytes, never empty. */
  data(bytes: Buffer): void;
  /** The socket takes writes again. */
  drain(): void;
  /** The connection is gone; called once. */
  closed(reason: PeerError): void;
}

/** A TCP connection after the Noise handshake: each write is one encrypted message. */
export class SecureChannel {
  readonly #socket: Socket;
  readonly #keys: NoiseKeys;
  #events: ChannelEvents;
  /** The beginning of a message whose end has not come: prefix, or prefix and a part. */
  #partial: Buffer | undefined;
  #partialBytes = 0;
  #reason: PeerError | undefined;
  #corked = false;

  constructor(socket: Socket, keys: NoiseKeys, events: ChannelEvents) {
    this.#socket = socket;
    this.#keys = keys;
    this.#events = events;
    socket.on('data', (bytes) => this.#receive(bytes as Buffer));
    socket.on('drain', () => this.#events.drain());
    socket.on('error', (cause) => this.destroy(new PeerError('closed', cause.message, { cause })));
    socket.on('end', () => this.destroy(new PeerError('closed', 'the peer ended the connection')));
    socket.on('close', () => this.#finish());
  }

  /** Replaces the receiver of all that comes after; it gets `rest` first. */
  handOver(events: ChannelEvents, rest?: Uint8Array): void {
    this.#events = events;
    if (rest !== undefined && rest.length > 0) events.data(Buffer.from(rest));
  }

  /** Whether more writes should wait for `drain`. */
  get isBlocked(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /**
   * Encrypts and writes one message. All writes of one turn of the event loop leave together.
   *
   * @param plaintext at most 65,519 bytes
   * @param sent called when the system has taken the bytes, or the connection is lost
   */
  write(plaintext: Uint8Array, sent?: () => void): void {
    if (this.#reason !== undefined) {
      sent?.();
      return;
    }
    let message: { ciphertext: Buffer; tag: Buffer };
    try {
      message = this.#keys.sending.encrypt(plaintext);
    } catch (error) {
      this.destroy(error as PeerError);
      sent?.();
      return;
    }
    this.#cork();
    const { ciphertext, tag } = message;
    const length = ciphertext.length + tagBytes;
    const small = ciphertext.length <= copiedBytes;
    const head = Buffer.allocUnsafe(small ? prefixBytes + length : prefixBytes);
    head.writeUInt16BE(length, 0);
    if (small) {
      ciphertext.copy(head, prefixBytes);
      tag.copy(head, prefixBytes + ciphertext.length);
      this.#socket.write(head, sent);
    } else {
      this.#socket.write(head);
      this.#socket.write(ciphertext);
      this.#socket.write(tag, sent);
    }
  }

  /** Stops reading until {@link resume}; the peer then meets TCP's own window. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Sends what was written, then closes. */
  end(reason: PeerError): void {
    this.#reason ??= reason;
    this.#socket.resume();
    this.#socket.destroySoon();
  }

  /** Closes at once. */
  destroy(reason: PeerError): void {
    this.#reason ??= reason;
    this.#socket.destroy();
  }

  #finish(): void {
    const reason = this.#reason ?? new PeerError('closed', 'the connection was lost');
    this.#reason = reason;
    this.#keys.sending.destroy();
    this.#keys.receiving.destroy();
    this.#partial = undefined;
    this.#events.closed(reason);
  }

  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#socket.cork();
    process.nextTick(() => {
      this.#corked = false;
      this.#socket.uncork();
    });
  }

  #receive(bytes: Buffer): void {
    if (this.#reason !== undefined) return;
    try {
      this.#split(bytes);
    } catch (error) {
      this.destroy(
        error instanceof PeerError ? error : new PeerError('closed', 'fault', { cause: error }),
      );
    }
  }

  /** Decrypts all messages that are complete; keeps the beginning of the last one. */
  #split(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && this.#reason === undefined) {
      if (this.#partial !== undefined) {
        rest = this.#fill(rest);
        continue;
      }
      const end = rest.length < prefixBytes ? undefined : prefixBytes + rest.readUInt16BE(0);
      if (end !== undefined && rest.length >= end) {
        this.#open(rest.subarray(prefixBytes, end));
        rest = rest.subarray(end);
      } else {
        this.#partial = Buffer.allocUnsafe(end ?? prefixBytes);
        this.#partialBytes = 0;
      }
    }
  }

  /** Adds to the partial message; returns what comes after it. */
  #fill(bytes: Buffer): Buffer {
    let partial = this.#partial as Buffer;
    const used = bytes.copy(partial, this.#partialBytes);
    this.#partialBytes += used;
    if (this.#partialBytes < partial.length) return bytes.subarray(used);
    this.#partial = undefined;
    const whole = prefixBytes + partial.readUInt16BE(0);
    if (partial.length === whole) {
      this.#open(partial.subarray(prefixBytes));
    } else {
      partial = Buffer.concat([partial], whole);
      this.#partial = partial;
    }
    return bytes.subarray(used);
  }

  #open(message: Buffer): void {
    const plaintext = this.#keys.receiving.decrypt(message);
    if (plaintext.length > 0) this.#events.data(plaintext);
  }
}
