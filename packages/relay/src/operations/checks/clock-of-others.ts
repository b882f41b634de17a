import { type Check, failed, ok, skipped, warning } from './check.ts';

/** Clocks that are compared, and relays asked for them. */
const enough = 3;
const most = 9;

/** Seconds of difference that are a warning. */
const noticeable = 5;

/** Whether the clock agrees with those of other relays, by their median. */
export const clockOfOthers: Check = {
  name: 'clock of others',
  scope: 'network',
  needs: ['keys'],
  cure: 'correct the setting `registry`',
  async find(relay, signal) {
    if (relay.listens.relays === undefined) {
      return skipped('federation.listen is empty: this relay uses no other relays');
    }
    const others = shuffled(await relay.otherRelays(signal));
    if (others.length === 0) return skipped('the registry lists no other active relay');
    const differences: number[] = [];
    for (let asked = 0; asked < Math.min(most, others.length); asked += enough) {
      if (differences.length >= enough) break;
      const batch = others.slice(asked, asked + enough);
      const found = await Promise.all(
        batch.map(({ endpoint }) =>
          differenceOf(async () => (await relay.fetcher).fetchDate(endpoint, signal)),
        ),
      );
      differences.push(...found.filter((one) => one !== undefined));
    }
    if (differences.length === 0) return skipped('no other relay answered over HTTPS');
    return clockFinding(differences, relay.limits.futureTolerance);
  },
};

/**
 * Judges by how many seconds this clock is ahead of others.
 *
 * @param tolerated seconds that relays tolerate
 * @param kind of the others
 */
export function clockFinding(
  differences: readonly number[],
  tolerated: number,
  kind: 'other relay' | 'node' = 'other relay',
) {
  const sorted = [...differences].sort((a, b) => a - b);
  // Of an even number, the smaller difference of the two in the middle.
  const middle = sorted.slice(
    Math.floor((sorted.length - 1) / 2),
    Math.floor(sorted.length / 2) + 1,
  );
  const median = middle.reduce((one, other) => (Math.abs(other) < Math.abs(one) ? other : one));
  const seconds = Math.round(Math.abs(median));
  const direction = median > 0 ? 'fast' : 'slow';
  const others = `${sorted.length} ${kind}${sorted.length === 1 ? '' : 's'}`;
  if (seconds <= noticeable) return ok(`agrees with ${others}, within ${noticeable} seconds`);
  const seen = `${seconds} seconds ${direction}, compared with ${others}`;
  const cure = "set the machine's clock right, and keep it right with NTP";
  if (seconds <= tolerated) return warning(seen, cure);
  return failed(`${seen}; others tolerate ${tolerated}`, cure);
}

/**
 * Returns the seconds by which this clock is ahead of a server; `undefined` if it does not answer.
 *
 * @param fetchDate returns the Unix milliseconds of the header `Date`
 */
export async function differenceOf(
  fetchDate: () => Promise<number | undefined>,
): Promise<number | undefined> {
  const before = Date.now();
  try {
    const time = await fetchDate();
    // The header has whole seconds, cut off.
    return time === undefined ? undefined : ((before + Date.now()) / 2 - time - 500) / 1_000;
  } catch {
    return undefined;
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, chance: Math.random() }))
    .sort((a, b) => a.chance - b.chance)
    .map(({ item }) => item);
}
