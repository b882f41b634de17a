/** Sequences kept for good: each showed once a relay that somebody had broken by hand. */
import type { Step } from './commands.ts';

export const cases: Readonly<Record<string, readonly Step[]>> = {
  'nothing happens': [],
};
