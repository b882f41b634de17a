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
  {
    ...{ seed: 5001, relays: 1, minutes: 2.9 },
    found: 'the harness took a device for removed before its removal was acknowledged',
  },
  {
    ...{ seed: 5002, relays: 2, minutes: 0.75 },
    found: 'a former home that hears of the move away after the state: the move begins again',
  },
  {
    ...{ seed: 5548, relays: 2, minutes: 0.6 },
    found: 'the harness took a removal for known at relays that had not heard of it',
  },
  {
    ...{ seed: 20_110, relays: 2, minutes: 1.8 },
    found: 'the harness gave up a call in which three steps of the clocks ended the session',
  },
];
