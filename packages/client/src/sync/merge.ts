import { AsyncQueue } from './async-queue.ts';

/**
 * Runs works beside each other and gives what they find, as it comes. One that fails ends no other;
 * its error is thrown once all have ended. Whoever takes no more ends them all.
 */
export async function* mergeGenerators<T>(
  signal: AbortSignal,
  works: readonly ((signal: AbortSignal) => AsyncGenerator<T>)[],
): AsyncGenerator<T> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const handoff = new AsyncQueue<T>();
  const running = Promise.allSettled(
    works.map(async (work) => {
      for await (const found of work(either)) await handoff.put(found);
    }),
  ).then((ends) => {
    const failed = ends.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') handoff.fail(failed.reason);
    else handoff.close();
  });
  try {
    yield* handoff.items();
  } finally {
    stop.abort();
    handoff.discard();
    await running;
  }
}
