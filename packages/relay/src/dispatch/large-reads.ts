import { Rotation } from '../rotation.ts';
import { Slices, type Steps } from './slices.ts';

/** Texts that are read at once: what is read of a text takes more memory than the text. */
const readAtOnce = 2;

/**
 * Reads the large texts of a process, of clients and of other relays, a few at once; the others wait
 * as bytes, in rotation.
 */
export class LargeReads {
  /** Runs other long work of calls too. */
  readonly slices: Slices;
  readonly #waiting = new Rotation<() => void>();
  #underWay = 0;

  constructor(slices: Slices = new Slices()) {
    this.slices = slices;
  }

  /**
   * Reads a text when it is its turn; throws what it throws.
   *
   * @param owner whose turns it takes, to begin and for each step
   * @param begin called when the turn has come
   */
  async run<T>(owner: string, begin: () => Steps<T>): Promise<T> {
    if (this.#underWay < readAtOnce) this.#underWay += 1;
    else await new Promise<void>((resolve) => this.#waiting.add(owner, resolve));
    try {
      return await this.slices.run(owner, begin());
    } finally {
      // The next one takes the place.
      const next = this.#waiting.take();
      if (next === undefined) this.#underWay -= 1;
      else next();
    }
  }
}
