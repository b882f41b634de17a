/** What tests choose by chance, so that a failure can be repeated as far as it is theirs to repeat. */

/** The same for every run unless `TEST_SEED` says otherwise: see `vitest.config.ts`. */
export const seed = Number(process.env.TEST_SEED);

/**
 * Which of its runs a test makes that can make more: `npm test` a `part`, `npm run test:long` the
 * `rest`; a file that is run by itself makes `all`.
 */
export const share = (process.env.TEST_SHARE ?? 'all') as 'part' | 'rest' | 'all';

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function chanceOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const chance = chanceOf(seed);

/** A whole number from 1 to `most`. */
export function upTo(most: number): number {
  return 1 + Math.floor(chance() * most);
}
