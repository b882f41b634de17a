import { AsyncQueue } from './async-queue.ts';

/**
 * Runs generators concurrently and yields their items as they come. If one fails, the others go on
 * and the error is thrown after all have ended. If the consumer stops, all are aborted.
 */
export async function* mergeGenerators<T>(
  signal: AbortSignal,
  works: readonly ((signal: AbortSignal) => AsyncGenerator<T>)[],
): AsyncGenerator<T> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const queue = new AsyncQueue<T>();
  const running = Promise.allSettled(
    works.map(async (work) => {
      for await (const found of work(either)) await queue.put(found);
    }),
  ).then((ends) => {
    const failed = ends.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') queue.fail(failed.reason);
    else queue.close();
  });
  try {
    yield* queue.items();
  } finally {
    stop.abort();
    queue.discard();
    await running;
  }
}
