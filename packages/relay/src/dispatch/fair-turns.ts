import { Rotation } from './rotation.ts';

/** Calls begun in one turn of the event loop; one that makes a page counts as all of them. */
const callsPerTurn = 64;

interface Waiting {
  readonly isPage: boolean;
  readonly begin: () => void;
}

/**
 * Begins calls in rotation of those who pay for them, so many in each turn of the event loop: so a
 * turn stays short, and an account with many calls delays those of another by a few. While there is
 * room, calls begin at once, and their writes share a transaction.
 */
export class FairTurns {
  readonly #waiting = new Rotation<Waiting>();
  #begun = 0;
  #isScheduled = false;

  /** Resolves when the owner may begin a call. */
  async take(owner: string, isPage: boolean): Promise<void> {
    if (this.#waiting.isEmpty && this.#begun < callsPerTurn) return this.#count(isPage);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(owner, { isPage, begin: resolve });
    await promise;
  }

  #count(isPage: boolean): void {
    this.#begun += isPage ? callsPerTurn : 1;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#begun = 0;
      this.#beginNext();
    });
  }

  #beginNext(): void {
    while (this.#begun < callsPerTurn) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      this.#count(next.isPage);
      next.begin();
    }
  }
}
