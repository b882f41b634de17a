import type { Clock } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ByteOwner } from './byte-ledger.ts';
import { bytesOfRead, type ReadTurns } from './read-turns.ts';

/** Milliseconds after which a debt is checked again, at the most. */
const longestWait = 30_000;
/** Connections of an owner that go on in one turn of the event loop. */
const connectionsOfTurn = 4;

export interface DebtsParts {
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly turns: ReadTurns;
  /** Returns the whole seconds for which an owner still owes; 0 if it does not. */
  readonly left: (owner: ByteOwner) => number;
}

interface Waiting {
  /** When it may go on at the earliest, monotonic milliseconds. */
  readonly at: number;
  readonly goOn: () => void;
}

/**
 * Connections that receive nothing while their owner owes bytes. When it owes none, they go on in the
 * order in which they came, a few in each turn, and only while it still owes none: all of an address
 * wait for the same moment, and what the first ones send may be all that it may send (02 §18).
 */
export class Debts {
  readonly #parts: DebtsParts;
  readonly #ofOwner = new Map<string, Set<Waiting>>();

  constructor(parts: DebtsParts) {
    this.#parts = parts;
  }

  /**
   * Calls `goOn` after so many seconds at the earliest, when the owner owes nothing.
   * @returns ends the wait without calling it
   */
  wait(owner: ByteOwner, seconds: number, goOn: () => void): Disposable {
    const key = payerKey(owner);
    const at = this.#parts.clock.monotonic() + seconds * 1_000;
    const waiting: Waiting = { at, goOn };
    const known = this.#ofOwner.get(key);
    const queue = known ?? new Set();
    queue.add(waiting);
    if (known === undefined) {
      this.#ofOwner.set(key, queue);
      this.#waitFor(owner, queue, at);
    }
    return { [Symbol.dispose]: () => void queue.delete(waiting) };
  }

  #waitFor(owner: ByteOwner, queue: Set<Waiting>, at: number): void {
    const { clock } = this.#parts;
    const wait = Math.min(longestWait, Math.max(0, at - clock.monotonic()));
    clock.after(wait, () => void this.#look(owner, queue));
  }

  /** Lets the first ones go on if the owner owes nothing, and sees to the others. */
  async #look(owner: ByteOwner, queue: Set<Waiting>): Promise<void> {
    const { clock, turns, left } = this.#parts;
    const key = payerKey(owner);
    for (;;) {
      const next = Math.min(connectionsOfTurn, Math.max(1, queue.size));
      await turns.take(key, next * bytesOfRead);
      const [first] = queue;
      if (first === undefined) {
        this.#ofOwner.delete(key);
        return;
      }
      const now = clock.monotonic();
      const at = Math.max(first.at, now + left(owner) * 1_000);
      if (at > now) {
        this.#waitFor(owner, queue, at);
        return;
      }
      let count = 0;
      for (const waiting of queue) {
        if (waiting.at > now || count === connectionsOfTurn) break;
        queue.delete(waiting);
        waiting.goOn();
        count += 1;
      }
    }
  }
}
