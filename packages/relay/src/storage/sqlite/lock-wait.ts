import { failureKind } from './failures.ts';

/** Milliseconds before the first retry; doubled for each further one, up to the longest. */
const firstPause = 2;
const longestPause = 50;

/**
 * Runs synchronous or asynchronous work again while another process locks the database, with pauses
 * in which the event loop is free. Gives up after `timeout` milliseconds with the last error.
 */
export async function whileLocked<T>(work: () => T | Promise<T>, timeout: number): Promise<T> {
  const until = performance.now() + timeout;
  for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
    try {
      return await work();
    } catch (error) {
      if (failureKind(error) !== 'locked' || performance.now() + pause > until) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
