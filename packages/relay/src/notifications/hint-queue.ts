import { BoundedMap } from '../bounded-map.ts';
import { type Hint, hintKeys } from './hint.ts';

/**
 * Keys whose rank is remembered, more than a connection can subscribe to. A forgotten one may be
 * told the same again, which hints are free to do.
 */
const maxRememberedKeys = 4_096;

export interface HintQueueParts {
  /** Sends a text; `sent` is called once the peer's network has taken it. */
  readonly send: (text: string, sent: () => void) => void;
  /** Whether the connection may hear anything now. */
  readonly mayPush: () => boolean;
}

/**
 * Hints on their way to one connection. A peer that reads slowly finds the newest hint of each key,
 * never a queue (02 §12.3).
 */
export class HintQueue {
  readonly #parts: HintQueueParts;
  readonly #waiting = new Map<string, Hint>();
  /** The highest rank that went out, by key: catching up must not repeat it. */
  readonly #told = new BoundedMap<string, number>(maxRememberedKeys);
  #isSending = false;

  constructor(parts: HintQueueParts) {
    this.#parts = parts;
  }

  /** Sends a hint as soon as those before it are gone, unless it tells nothing new. */
  push(hint: Hint): void {
    if (!this.#parts.mayPush()) return;
    const { key, rank = Number.POSITIVE_INFINITY } = hint;
    const newest = Math.max(this.#waiting.get(key)?.rank ?? -1, this.#told.get(key) ?? -1);
    if (newest >= rank) return;
    this.#waiting.set(key, hint);
    this.#flush();
  }

  /** Heads of a timeline up to this one are the client's to catch up with (02 §13.3). */
  startAt(id: string, head: number): void {
    this.#told.set(hintKeys(id).timeline, head);
  }

  /** Drops all that waits, and was told, of a group or a channel. */
  forget(id: string): void {
    for (const key of Object.values(hintKeys(id))) {
      this.#waiting.delete(key);
      this.#told.delete(key);
    }
  }

  /** Drops all that waits. */
  clear(): void {
    this.#waiting.clear();
  }

  #flush(): void {
    if (this.#isSending || this.#waiting.size === 0) return;
    const hints = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#isSending = true;
    let unsent = hints.length;
    for (const { key, text, rank } of hints) {
      if (rank !== undefined) this.#told.set(key, rank);
      this.#parts.send(text, () => {
        unsent -= 1;
        if (unsent > 0) return;
        this.#isSending = false;
        if (this.#parts.mayPush()) this.#flush();
      });
    }
  }
}
