/** Polling the groups this account applied to: no hint announces an approval (05 §13.29, §17.3). */
import type { AccountCore } from '../core.ts';
import { groupRows } from '../groups/group-rows.ts';

/** Milliseconds between two polls of a new application, and the most between two of an old one. */
const [shortest, longest] = [5_000, 60_000];
/** The interval grows once it is less than this share of the application's age: after 2 minutes. */
const share = 24;
/** Applications at one host that are polled at this pace; more of them are polled less often. */
const atFullPace = 8;

/**
 * Returns the milliseconds between two polls: 24 polls in two minutes, then longer and longer.
 *
 * @param age milliseconds since the newest application
 * @param count of applications at the host, which are polled together
 */
export function pollInterval(age: number, count: number): number {
  // The clock was put back: the age is not known.
  if (!(age >= 0)) return longest;
  return Math.min(longest, Math.max(shortest, age / share) * Math.ceil(count / atFullPace));
}

/** Returns the interval for the applications at a host; `undefined` if there are none. */
export async function applicationInterval(
  { store, clock }: AccountCore,
  relayId: string,
): Promise<number | undefined> {
  const rows = (await store.read((tx) => groupRows(tx))).filter(
    ({ relay_id, standing }) => relay_id === relayId && standing === 'applied',
  );
  if (rows.length === 0) return undefined;
  const newest = Math.max(...rows.map(({ appliedAt = 0 }) => appliedAt));
  return pollInterval(clock.milliseconds() - newest, rows.length);
}
