/** Runs a job's task for one group, channel or account after another. */
import type { RelayContext } from '../context.ts';
import { jobTaskFailed } from '../observability/events.ts';
import type { AggregateKey, Reader } from '../storage/types.ts';

/** A task of a job. */
export interface Task<T> {
  /** Name of the job. */
  readonly job: string;
  /** Which of its tasks, for the log. */
  readonly task: string;
  /**
   * Reads a batch of due items after a given one, in a fixed order; an empty batch ends the task.
   */
  readonly find: (tx: Reader, after: T | undefined) => Promise<readonly T[]>;
  readonly aggregateOf: (item: T) => AggregateKey;
  /** Handles the due items of one aggregate and leaves none of them due. */
  readonly work: (aggregate: AggregateKey, due: readonly [T, ...T[]]) => Promise<unknown>;
}

/**
 * Runs a task for every aggregate it is due for. A failure is logged, and one failing aggregate
 * does not delay the others: it is skipped until a pause is over that grows with each failure.
 *
 * @param signal ends the run between two aggregates; an error after it was given is thrown
 */
export async function forEachAggregate<T>(
  context: Pick<RelayContext, 'clock' | 'log' | 'metrics' | 'backoff' | 'storage'>,
  signal: AbortSignal,
  { job, task, find, aggregateOf, work }: Task<T>,
): Promise<void> {
  const { clock, backoff, storage } = context;
  const started = clock.now();
  for (let after: T | undefined; ; ) {
    const found = await storage.read((tx) => find(tx, after));
    for (const [aggregate, due] of Map.groupBy(found, aggregateOf)) {
      if (signal.aborted) return;
      const failing = { job, task, aggregate };
      if (backoff.isPaused(failing, clock.now())) continue;
      try {
        await work(aggregate, due as [T, ...T[]]);
        backoff.clear(failing);
      } catch (error) {
        if (signal.aborted) throw error;
        const retryInSeconds = backoff.add(failing, clock.now());
        jobTaskFailed(context, { job, task, owner: aggregate, error, retryInSeconds });
      }
    }
    after = found.at(-1);
    if (after === undefined) break;
  }
  backoff.forgetOlderThan({ job, task }, started);
}

/**
 * Returns when a job has to run again, Unix seconds.
 *
 * @param deadline the next stored deadline, Unix seconds
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
