/** Verifies many items in short turns, so that the page or program that it shares a thread with goes on. */
import type { Network } from '@posthouse/protocol';
import { nextTurn } from '@posthouse/protocol/crypto';

/** Items that are computed at once: a few, if the platform computes them on several threads. */
const batchSize = { here: 2, onPlatform: 8 };

/** Milliseconds of computing after which other tasks of the page or program have their turn. */
const turnTime = 10;

/**
 * Runs pure work on each item, in order, with a turn of the event loop after every {@link turnTime}.
 *
 * @throws what the work throws for the first item for which it throws
 */
export async function computeInTurns<Item, Result>(
  network: Network,
  items: readonly Item[],
  work: (network: Network, item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for await (const turn of inTurns(network, items)) {
    const found = await network.computeAsync((each) => turn.map((item) => work(each, item)));
    results.push(...found);
  }
  return results;
}

/** Yields items, a few at once, and ends the turn of the event loop when it was long enough. */
export async function* inTurns<Item>(
  { primitives }: Network,
  items: readonly Item[],
): AsyncGenerator<readonly Item[]> {
  const size = primitives.asynchronous === undefined ? batchSize.here : batchSize.onPlatform;
  let begun = performance.now();
  for (let start = 0; start < items.length; start += size) {
    if (performance.now() - begun >= turnTime) {
      await nextTurn();
      begun = performance.now();
    }
    yield items.slice(start, start + size);
  }
}
