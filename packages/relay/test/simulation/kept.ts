/** Simulations that are always run first: those that broke a rule once, and why. */

export interface KeptSeed {
  readonly seed: number;
  readonly relays: number;
  readonly minutes: number;
  /** What it found. */
  readonly found: string;
}

export const keptSeeds: readonly KeptSeed[] = [
  { seed: 5, relays: 1, minutes: 0.3, found: 'nothing: shows that a seed replays exactly' },
];
