import type { Socket } from 'node:net';
import { PeerError } from './errors.ts';
import { tagBytes } from './noise/cipher.ts';
import type { NoiseKeys } from './noise/handshake.ts';
import { undivided } from './turns.ts';

/** Bytes before each message that say its length. */
const prefixBytes = 2;
/** Ciphertexts up to this are copied into one buffer with their prefix and tag. */
const copiedBytes = 4_096;

/** What the owner of a channel is told. */
export interface ChannelEvents {
  /** Decrypted bytes, never empty. Returns how many it took; the others come again in a later step. */
  data(bytes: Buffer): number;
  /** The socket takes writes again. */
  drain(): void;
  /** The connection is gone; called once. */
  closed(reason: PeerError): void;
}

/** Takes steps until one returns `false`, at once or in later turns of the event loop. */
export type RunSteps = (step: () => boolean) => void;

const runAtOnce: RunSteps = (step) => undivided.run('', step);
const noBytes = Buffer.alloc(0);
/** Bytes of messages that are decrypted in one step, about: of the smallest ones, some fifty. */
const bytesOfStep = 1_024;

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
  readonly #runSteps: RunSteps;
  /** What was received and not decrypted, and what was decrypted and not taken. */
  #arrived: Buffer = noBytes;
  #opened: Buffer = noBytes;
  /** Whether steps are under way or wait for their turn. */
  #isStepping = false;
  #isPaused = false;
  /** Whether the peer sends no more. */
  #hasEnded = false;

  /** @param runSteps takes the steps in which all that arrives is handled; by default at once */
  constructor(socket: Socket, keys: NoiseKeys, events: ChannelEvents, runSteps = runAtOnce) {
    this.#socket = socket;
    this.#keys = keys;
    this.#events = events;
    this.#runSteps = runSteps;
    socket.on('data', (bytes) => this.#receive(bytes as Buffer));
    socket.on('drain', () => this.#events.drain());
    socket.on('error', (cause) => this.destroy(new PeerError('closed', cause.message, { cause })));
    // This side ends when all that has arrived is handled.
    socket.allowHalfOpen = true;
    socket.on('end', () => this.#receiveEnd());
    socket.on('close', () => this.#finish());
  }

  /** Replaces the receiver of all that comes after; it gets `rest` first. */
  handOver(events: ChannelEvents, rest?: Uint8Array): void {
    this.#events = events;
    if (rest === undefined || rest.length === 0) return;
    this.#opened = Buffer.from(rest);
    this.#handle();
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
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isStepping) this.#socket.resume();
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
    this.#arrived = noBytes;
    this.#opened = noBytes;
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
    this.#arrived = this.#arrived.length === 0 ? bytes : Buffer.concat([this.#arrived, bytes]);
    this.#handle();
  }

  /** Handles what has arrived; nothing more is received before it is done. */
  #handle(): void {
    if (this.#isStepping) return;
    this.#isStepping = true;
    this.#runSteps(() => this.#step());
    if (this.#isStepping) this.#socket.pause();
  }

  #receiveEnd(): void {
    this.#hasEnded = true;
    if (!this.#isStepping) this.#endedByPeer();
  }

  #endedByPeer(): void {
    this.destroy(new PeerError('closed', 'the peer ended the connection'));
  }

  /** Handles a small part of what has arrived; returns whether there is more. */
  #step(): boolean {
    if (this.#reason === undefined && this.#tryPart()) return true;
    this.#isStepping = false;
    if (this.#hasEnded) this.#endedByPeer();
    else if (!this.#isPaused && this.#socket.isPaused()) this.#socket.resume();
    return false;
  }

  #tryPart(): boolean {
    try {
      return this.#handlePart();
    } catch (error) {
      this.destroy(
        error instanceof PeerError ? error : new PeerError('closed', 'fault', { cause: error }),
      );
      return false;
    }
  }

  /** Decrypts messages, a few if they are small, and passes them on. */
  #handlePart(): boolean {
    for (let bytes = 0; bytes < bytesOfStep && this.#reason === undefined; ) {
      if (this.#opened.length === 0) {
        const message = this.#nextMessage();
        if (message === undefined) return false;
        bytes += prefixBytes + message.length;
        this.#opened = this.#keys.receiving.decrypt(message);
      }
      if (this.#opened.length > 0) this.#pass();
      if (this.#opened.length > 0) return true;
    }
    return true;
  }

  /** Passes on what was decrypted, as much as is taken. */
  #pass(): void {
    const bytes = this.#opened;
    // Who takes it may hand over, with bytes of its own.
    this.#opened = noBytes;
    const taken = this.#events.data(bytes);
    if (taken < bytes.length) this.#opened = bytes.subarray(taken);
  }

  /** Takes the next message that is complete; keeps the beginning of one that is not. */
  #nextMessage(): Buffer | undefined {
    while (this.#arrived.length > 0) {
      const message = this.#partial === undefined ? this.#wholeMessage() : this.#fill();
      if (message !== undefined) return message;
    }
    // An empty view would keep the memory of what was received last.
    this.#arrived = noBytes;
    return undefined;
  }

  /** Takes a message of which all has arrived, or makes room for all of it. */
  #wholeMessage(): Buffer | undefined {
    const bytes = this.#arrived;
    const end = bytes.length < prefixBytes ? undefined : prefixBytes + bytes.readUInt16BE(0);
    if (end !== undefined && bytes.length >= end) {
      this.#arrived = bytes.subarray(end);
      return bytes.subarray(prefixBytes, end);
    }
    this.#partial = Buffer.allocUnsafe(end ?? prefixBytes);
    this.#partialBytes = 0;
    return undefined;
  }

  /** Adds to the partial message; returns it when it is complete. */
  #fill(): Buffer | undefined {
    const partial = this.#partial as Buffer;
    const used = this.#arrived.copy(partial, this.#partialBytes);
    this.#partialBytes += used;
    this.#arrived = this.#arrived.subarray(used);
    if (this.#partialBytes < partial.length) return undefined;
    const whole = prefixBytes + partial.readUInt16BE(0);
    this.#partial = partial.length === whole ? undefined : Buffer.concat([partial], whole);
    return partial.length === whole ? partial.subarray(prefixBytes) : undefined;
  }
}
