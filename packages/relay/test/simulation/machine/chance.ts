/** What a simulation decides by chance: everything follows from its seed. */
import { chanceOf } from '../../support/chance.ts';

/** Spreads the seeds of the streams of one simulation. */
const spread = 0x9e3779b1;

export class Chance {
  readonly #next: () => number;

  /**
   * @param stream what the numbers are for: what one part draws shifts no other part's numbers
   */
  constructor(seed: number, stream: string) {
    let mixed = Math.imul(seed, spread);
    for (const letter of stream) mixed = Math.imul(mixed ^ letter.charCodeAt(0), spread);
    this.#next = chanceOf(mixed);
  }

  /** A number from 0 to below 1. */
  number(): number {
    return this.#next();
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.#next() * end);
  }

  /** A number from `low` to below `high`. */
  between(low: number, high: number): number {
    return low + this.#next() * (high - low);
  }

  /** True in this share of all cases. */
  is(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error('nothing to pick from');
    return items[this.below(items.length)] as T;
  }

  /** Picks by weight. */
  weighted<T>(items: readonly (readonly [weight: number, item: T])[]): T {
    let left = this.#next() * items.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of items) {
      left -= weight;
      if (left < 0) return item;
    }
    return (items.at(-1) as readonly [number, T])[1];
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }
}
