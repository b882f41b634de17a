import { FairSlots } from '../fair-slots.ts';
import { Slices, type Steps } from './slices.ts';

/** Texts that are read at once: what is read of a text takes more memory than the text. */
const readAtOnce = 2;

/**
 * Runs the long work of calls, of clients and of other relays, in slices. Large texts are read a few at
 * once; the others wait as bytes, in rotation. One value for all callers of a process.
 */
export class LongWork {
  readonly #slices: Slices;
  readonly #reads = new FairSlots(readAtOnce);

  constructor(slices: Slices = new Slices()) {
    this.#slices = slices;
  }

  /** Runs work on what was read, in turns of its owner; throws what it throws. */
  run<T>(owner: string, steps: Steps<T>): Promise<T> {
    return this.#slices.run(owner, steps);
  }

  /**
   * Reads a text when it is its turn; throws what it throws.
   *
   * @param owner whose turns it takes, to begin and for each step
   * @param begin called when the turn has come
   */
  async read<T>(owner: string, begin: () => Steps<T>): Promise<T> {
    await this.#reads.take(owner);
    try {
      return await this.#slices.run(owner, begin());
    } finally {
      this.#reads.give();
    }
  }
}
