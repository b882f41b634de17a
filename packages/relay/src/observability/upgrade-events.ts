/** Events of a start on an older database; as `events.ts`. */
import type { RelayContext } from '../context.ts';

interface Observed {
  readonly log: Pick<RelayContext['log'], 'info' | 'warn'>;
}

/** A step of the schema, as the log shows it. */
interface Step {
  readonly id: number;
  readonly name: string;
  readonly note?: string;
}

/**
 * Records that the database is of an older relay.
 *
 * @param steps.from how many migrations the database has, of `to`
 */
export function upgradeBegins(
  { log }: Observed,
  {
    from,
    to,
    missing,
  }: { readonly from: number; readonly to: number; readonly missing: readonly Step[] },
): void {
  const steps = missing.map(({ id, name }) => `${id} ${name}`);
  log.warn({ from, to, steps }, `the database is upgraded from schema ${from} to ${to}`);
}

/** Records that the upgrade is complete, and what the operator has to know of it. */
export function databaseUpgraded({ log }: Observed, applied: readonly Step[]): void {
  for (const { id, note } of applied) {
    if (note !== undefined) log.warn({ step: id }, `note on the upgrade: ${note}`);
  }
  log.info('the database is upgraded');
}
