/** Work of jobs that goes from one group, channel or account to the next. */
import type { RelayContext } from '../context.ts';
import { jobTaskFailed } from '../observability/events.ts';
import type { AggregateKey, Reader } from '../storage/types.ts';

/** A task of a job, and how what it is about is found. */
export interface Task<T> {
  /** Name of the job. */
  readonly job: string;
  /** Which of its tasks, for the log. */
  readonly task: string;
  /** What is due behind one of them, in a fixed order, some at a time; nothing ends the task. */
  readonly find: (tx: Reader, after: T | undefined) => Promise<readonly T[]>;
  readonly ownerOf: (one: T) => AggregateKey;
  /** Does what was found of one owner, and leaves none of it due. */
  readonly work: (owner: AggregateKey, due: readonly [T, ...T[]]) => Promise<unknown>;
}

/**
 * Does a task for everybody it is due for. Where it fails for one owner, that is logged, and the
 * others have their turn: no broken group keeps the deadlines of another from being met. It is
 * tried again after a pause that grows with each failure; until then the owner is passed over.
 *
 * @param signal where it was given, the run ends; what fails then ends it too
 */
export async function forEachAggregate<T>(
  context: Pick<RelayContext, 'clock' | 'log' | 'metrics' | 'backoff' | 'storage'>,
  signal: AbortSignal,
  { job, task, find, ownerOf, work }: Task<T>,
): Promise<void> {
  const { clock, backoff, storage } = context;
  const started = clock.now();
  for (let after: T | undefined; ; ) {
    const found = await storage.read((tx) => find(tx, after));
    for (const [owner, due] of Map.groupBy(found, ownerOf)) {
      if (signal.aborted) return;
      const owned = { job, task, owner };
      if (backoff.isPaused(owned, clock.now())) continue;
      try {
        await work(owner, due as [T, ...T[]]);
        backoff.clear(owned);
      } catch (error) {
        if (signal.aborted) throw error;
        const retryInSeconds = backoff.add(owned, clock.now());
        jobTaskFailed(context, { ...owned, error, retryInSeconds });
      }
    }
    after = found.at(-1);
    if (after === undefined) break;
  }
  backoff.forgetOlderThan({ job, task }, started);
}

/**
 * When a job has to run again.
 * @param deadline the next one that is still to come, Unix seconds
 */
export function nextRun(
  { backoff }: Pick<RelayContext, 'backoff'>,
  job: string,
  deadline: number | undefined,
): number | undefined {
  const retry = backoff.nextRetry(job);
  if (retry === undefined || deadline === undefined) return retry ?? deadline;
  return Math.min(retry, deadline);
}
