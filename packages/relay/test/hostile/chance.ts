import { chanceOf } from '../support/chance.ts';

/** Choices that follow from a seed and the number of an input, so that each input can be repeated. */
export class Chance {
  readonly #next: () => number;

  constructor(seed: number, input: number) {
    this.#next = chanceOf(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(input, 0xc2b2ae35));
  }

  /** A whole number below `end`. */
  below(end: number): number {
    return Math.floor(this.#next() * end);
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('there is nothing to pick');
    return items[this.below(items.length)] as T;
  }
}
