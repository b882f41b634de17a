/** That what is due is done. */
import type { Journal } from '../journal.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';

/** Seconds by which work may be late. */
const tolerance = 90;

/** What each relay must have done by a time, and how to find what it has not. */
const overdue = [
  ['a delivery', 'SELECT count(*) AS n FROM deliveries WHERE next_attempt_at < ?'],
  ['a challenge', 'SELECT count(*) AS n FROM auth_challenges WHERE expires_at < ?'],
  ['a session', 'SELECT count(*) AS n FROM auth_sessions WHERE expires_at < ?'],
  ['a staged state', 'SELECT count(*) AS n FROM staged_states WHERE staged_until < ?'],
  ['an invitation', 'SELECT count(*) AS n FROM group_invites WHERE live = 1 AND expires_at < ?'],
] as const;

/** Checks the stored deadlines of relays that could do their work. */
export function checkDeadlines(relays: readonly SimulatedRelay[], journal: Journal): void {
  for (const relay of relays) {
    if (!relay.isUndisturbed(tolerance)) continue;
    for (const [what, sql] of overdue) {
      const [row] = relay.disk.query<{ n: number }>(sql, relay.clock.now() - tolerance);
      journal.must(row?.n === 0, () => `${relay.name}: ${what} is overdue by ${tolerance} s`);
    }
  }
}
