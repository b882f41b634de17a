import { BoundedMap } from '../bounded-map.ts';

/** Seconds between retries after 1, 2, 3, and 4 or more failures. */
const delays = [1, 5, 30, 300] as const;

/** Returns the seconds to wait after a number of failures in a row, at least 1. */
export function delayAfter(failures: number): number {
  return delays[Math.min(failures, delays.length) - 1] ?? delays[0];
}

/** A task of a job for one group, channel or account. */
export interface AggregateTask {
  /** Name of the job. */
  readonly job: string;
  /** Name of the task. */
  readonly task: string;
  /** Key of the aggregate. */
  readonly aggregate: string;
}

interface Failure {
  readonly job: string;
  readonly task: string;
  readonly failures: number;
  /** Unix seconds. */
  readonly retryAt: number;
}

/** A failure that is dropped is only retried sooner. */
const maxRemembered = 1_000;

/**
 * Remembers failures of jobs for single groups, channels and accounts, and when each is retried, so
 * that other aggregates do not wait. Held in the memory of one process: others retry on their own.
 */
export class JobBackoff {
  readonly #known = new BoundedMap<string, Failure>(maxRemembered);

  /** Tells whether the task failed recently and must not be retried yet. */
  isPaused(task: AggregateTask, now: number): boolean {
    const failure = this.#known.get(keyOf(task));
    return failure !== undefined && now < failure.retryAt;
  }

  /** Records a failure; returns the seconds until the retry. */
  add(task: AggregateTask, now: number): number {
    const key = keyOf(task);
    const failures = (this.#known.get(key)?.failures ?? 0) + 1;
    const pause = delayAfter(failures);
    this.#known.set(key, { job: task.job, task: task.task, failures, retryAt: now + pause });
    return pause;
  }

  /** Forgets the failures of a task that succeeded. */
  clear(task: AggregateTask): void {
    this.#known.delete(keyOf(task));
  }

  /**
   * Forgets failures whose retry was due by an instant and did not happen: the task is not due for
   * them any more. Called after a run over all aggregates that began at this instant.
   */
  forgetOlderThan({ job, task }: Omit<AggregateTask, 'aggregate'>, by: number): void {
    for (const [key, failure] of [...this.#known.entries()]) {
      const isOfTask = failure.job === job && failure.task === task;
      if (isOfTask && failure.retryAt <= by) this.#known.delete(key);
    }
  }

  /** Returns when the job's next retry is due, Unix seconds. */
  nextRetry(job: string): number | undefined {
    let next: number | undefined;
    for (const [, failure] of this.#known.entries()) {
      if (failure.job === job) next = Math.min(next ?? Infinity, failure.retryAt);
    }
    return next;
  }
}

function keyOf({ job, task, aggregate }: AggregateTask): string {
  return `${job} ${task} ${aggregate}`;
}
