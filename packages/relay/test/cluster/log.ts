/**
 * What the clients of a cluster saw, in the order in which they saw it. All of them run in one
 * process, so the order is total: what stands earlier was known before what stands later.
 */
import type { ErrorCode } from '@posthouse/protocol';

/** A record of a timeline as a page showed it. */
export interface Entry {
  readonly sequence: number;
  /** Logical key of the message: sender and message ID. */
  readonly id: string;
  /** Digest of the complete envelope. */
  readonly content: string;
}

/** The outcome of a call: an answer, or a connection that ended without one. */
export type Outcome = 'ok' | 'lost' | ErrorCode;

export type Seen =
  /** A message is sent for the first time; retries are further calls with its content. */
  | {
      readonly kind: 'sending';
      readonly id: string;
      readonly content: string;
      readonly from: string;
      readonly to: string;
      /** Devices with a key box, valid when it was sealed. */
      readonly readers: readonly string[];
    }
  /** A call that needs a session, or an authentication, which names its nonce. */
  | {
      readonly kind: 'call';
      readonly call: number;
      readonly device: string;
      readonly method: string;
      /** Of the message a `message.send` carries. */
      readonly content?: string;
      readonly nonce?: string;
    }
  | { readonly kind: 'answer'; readonly call: number; readonly outcome: Outcome }
  /** An answer of `message.timeline.sync`. */
  | {
      readonly kind: 'page';
      readonly account: string;
      readonly device: string;
      /** How the client came to read: on a hint or a reconnect, or all of it from the start. */
      readonly reading: 'on' | 'again';
      readonly after: number;
      readonly entries: readonly Entry[];
    }
  /** `message.timeline.changed`. */
  | {
      readonly kind: 'head';
      readonly account: string;
      readonly device: string;
      readonly connection: number;
      readonly head: number;
    }
  /** `device.state.changed`. */
  | {
      readonly kind: 'revision';
      readonly account: string;
      readonly device: string;
      readonly connection: number;
      readonly revision: number;
    }
  /** A state without the device is being published, with which revision, and was confirmed. */
  | {
      readonly kind: 'removing' | 'removed';
      readonly account: string;
      readonly device: string;
      readonly revision: number;
    }
  /** A fault begins; it lasts until everybody has recovered from it. */
  | { readonly kind: 'fault'; readonly name: string }
  | { readonly kind: 'recovered'; readonly name: string };

/** Something seen, with milliseconds of a clock that never goes back. */
export type LogEntry = Seen & { readonly at: number };

/** The record of one run, and a way to wait for what it will hold. */
export class Log {
  readonly entries: LogEntry[] = [];
  readonly #waiting = new Set<() => void>();
  #calls = 0;

  add(seen: Seen): void {
    this.entries.push({ ...seen, at: performance.now() });
    for (const look of this.#waiting) look();
  }

  /** A number for the next call. */
  nextCall(): number {
    this.#calls += 1;
    return this.#calls;
  }

  /**
   * Resolves as soon as the condition holds; it is looked at whenever something was seen.
   * @throws Error with what was waited for when it does not hold in time
   */
  async until(what: () => string, holds: () => boolean, milliseconds = 30_000): Promise<void> {
    if (holds()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (holds()) resolve();
    };
    const deadline = setTimeout(() => reject(new Error(`waited for ${what()}`)), milliseconds);
    this.#waiting.add(look);
    try {
      await promise;
    } finally {
      clearTimeout(deadline);
      this.#waiting.delete(look);
    }
  }
}
