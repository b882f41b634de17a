import { BoundedMap } from '../bounded-map.ts';

/** Seconds between tries of what fails: longer each time, and never longer than the last. */
const delays = [1, 5, 30, 300] as const;

/** Seconds to wait after so many failures in a row, one at least. */
export function delayAfter(failures: number): number {
  return delays[Math.min(failures, delays.length) - 1] ?? delays[0];
}

/** Work of a job on one group, channel or account. */
export interface AggregateTask {
  /** Name of the job. */
  readonly job: string;
  /** Which of its tasks. */
  readonly task: string;
  /** Whose: the aggregate. */
  readonly owner: string;
}

interface Failure {
  readonly job: string;
  readonly task: string;
  readonly failures: number;
  /** Unix seconds. */
  readonly retryAt: number;
}

/** Whatever is forgotten is tried again sooner, and that is all. */
const maxRemembered = 1_000;

/**
 * What jobs failed to do for single groups, channels and accounts, and when it is tried again, so
 * that nobody else waits for it. In the memory of one process: another one makes its own attempts.
 */
export class JobBackoff {
  readonly #known = new BoundedMap<string, Failure>(maxRemembered);

  /** Whether the task failed so lately that it is left alone for now. */
  isPaused(task: AggregateTask, now: number): boolean {
    const setback = this.#known.get(keyOf(task));
    return setback !== undefined && now < setback.retryAt;
  }

  /** Notes a failure; says for how many seconds the task is left alone. */
  add(task: AggregateTask, now: number): number {
    const key = keyOf(task);
    const failures = (this.#known.get(key)?.failures ?? 0) + 1;
    const pause = delayAfter(failures);
    this.#known.set(key, { job: task.job, task: task.task, failures, retryAt: now + pause });
    return pause;
  }

  /** The task was done. */
  clear(task: AggregateTask): void {
    this.#known.delete(keyOf(task));
  }

  /**
   * Forgets what was to be tried again by an instant, and was not: nothing is due of it any more.
   * Called at the end of a task that came past everybody since then.
   */
  forgetOlderThan({ job, task }: Omit<AggregateTask, 'owner'>, by: number): void {
    for (const [key, setback] of [...this.#known.entries()]) {
      const isOfTask = setback.job === job && setback.task === task;
      if (isOfTask && setback.retryAt <= by) this.#known.delete(key);
    }
  }

  /** When the job has to try something again, Unix seconds. */
  nextRetry(job: string): number | undefined {
    let next: number | undefined;
    for (const [, setback] of this.#known.entries()) {
      if (setback.job === job) next = Math.min(next ?? Infinity, setback.retryAt);
    }
    return next;
  }
}

function keyOf({ job, task, owner }: AggregateTask): string {
  return `${job} ${task} ${owner}`;
}
