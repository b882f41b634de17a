import { BoundedMap } from '../bounded-map.ts';
import { type Hint, hintKeys } from './hint.ts';

/**
 * Limit of keys whose last rank is remembered, above the number of subscriptions of a connection.
 * After eviction the same hint may be sent again, which is allowed.
 */
const maxRememberedKeys = 4_096;

export interface HintQueueParts {
  /** Sends a text; `sent` is called when it was written to the network. */
  readonly send: (text: string, sent: () => void) => void;
  /** Calls `work` before the next write to the network, at the end of this moment. */
  readonly beforeWrite: (work: () => void) => void;
  /** Whether hints may be sent on the connection now. */
  readonly mayPush: () => boolean;
}

/**
 * The unsent hints of one connection. A peer that reads slowly receives the newest hint of each key,
 * never a backlog (02 §12.3). What becomes durable at once is one hint of each key, in one write with
 * the answers.
 */
export class HintQueue {
  readonly #parts: HintQueueParts;
  readonly #waiting = new Map<string, Hint>();
  /** The highest rank sent, by key: a resync must not repeat it. */
  readonly #sentRanks = new BoundedMap<string, number>(maxRememberedKeys);
  #isSending = false;
  /** Whether waiting hints are sent before the next write. */
  #isScheduled = false;

  constructor(parts: HintQueueParts) {
    this.#parts = parts;
  }

  /** Sends a hint after those before it, unless its rank was sent or is waiting already. */
  push(hint: Hint): void {
    if (!this.#parts.mayPush()) return;
    const { key, rank = Number.POSITIVE_INFINITY } = hint;
    const newest = Math.max(this.#waiting.get(key)?.rank ?? -1, this.#sentRanks.get(key) ?? -1);
    if (newest >= rank) return;
    this.#waiting.set(key, hint);
    this.#flushSoon();
  }

  /** Suppresses hints of a timeline up to `head`, which the client reads by itself (02 §13.3). */
  startAt(id: string, head: number): void {
    this.#sentRanks.set(hintKeys(id).timeline, head);
  }

  /** Drops the waiting hints and the remembered ranks of a group or a channel. */
  forget(id: string): void {
    for (const key of Object.values(hintKeys(id))) {
      this.#waiting.delete(key);
      this.#sentRanks.delete(key);
    }
  }

  /** Drops all waiting hints. */
  clear(): void {
    this.#waiting.clear();
  }

  #flushSoon(): void {
    if (this.#isSending || this.#isScheduled) return;
    this.#isScheduled = true;
    this.#parts.beforeWrite(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#waiting.size === 0 || !this.#parts.mayPush()) return;
    const hints = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#isSending = true;
    let unsent = hints.length;
    for (const { key, text, rank } of hints) {
      if (rank !== undefined) this.#sentRanks.set(key, rank);
      this.#parts.send(text, () => {
        unsent -= 1;
        if (unsent > 0) return;
        this.#isSending = false;
        this.#flush();
      });
    }
  }
}
