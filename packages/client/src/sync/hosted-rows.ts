/** Reading the groups and the channels of one host: order, isolation of failures, interruptions. */
import type { AccountCore } from '../core.ts';
import type { PlainError } from '../errors.ts';
import { recordEvents, recordPassing } from '../events/event-log.ts';
import type { AccountEvent } from '../events.ts';
import type { Collection } from '../store/collection.ts';
import { byLastInterrupted } from './budget.ts';
import type { HostVisit } from './host-visit.ts';

/** What the rows of groups and channels have in common. */
export interface HostedRow {
  /** Relay ID of the host. */
  readonly relay_id: string;
  /** Unix milliseconds at which reading stopped with more left to read. */
  readonly leftAt?: number;
}

/** Returns the rows of one host in read order: rows interrupted last time come last. */
export function rowsAtHost<R extends HostedRow>(rows: readonly R[], host: string): R[] {
  return rows.filter(({ relay_id }) => relay_id === host).sort(byLastInterrupted);
}

/**
 * Whether a row is read in this round. If only some are asked for, these and rows with open work
 * are read; an interrupted row waits for a round of all rows, whatever hints its host sends.
 */
export function isDue(
  row: HostedRow,
  only: ReadonlySet<string> | undefined,
  { id, hasOpenWork }: { readonly id: string; readonly hasOpenWork: boolean },
): boolean {
  if (only === undefined) return true;
  return (only.has(id) || hasOpenWork) && row.leftAt === undefined;
}

/**
 * Runs the work for one group or channel and turns its failure into an event, so that the others
 * are still read.
 *
 * @throws whatever concerns more than one row, see {@link HostVisit.failureOf}
 */
export async function* isolateFailure<E extends AccountEvent>(
  { core, visit }: { readonly core: AccountCore; readonly visit: HostVisit },
  work: () => AsyncGenerator<readonly E[]>,
  failed: (error: PlainError) => E,
): AsyncGenerator<readonly E[]> {
  try {
    visit.throwIfUnavailable();
    yield* work();
  } catch (error) {
    const event = failed(visit.failureOf(error));
    await recordPassing(core, [event]);
    yield [event];
  }
}

/**
 * Stores that reading a row stopped with more left to read, and the event about it; other rows come
 * first next time.
 */
export async function markInterrupted<R extends HostedRow>(
  { store, clock }: AccountCore,
  rows: Collection<R>,
  { id, event }: { readonly id: string; readonly event: AccountEvent },
): Promise<void> {
  await store.write(async (tx) => {
    await recordEvents(tx, [event]);
    const row = await rows.get(tx, id);
    if (row !== undefined) await rows.put(tx, id, { ...row, leftAt: clock.milliseconds() });
  });
}
