/** Verifies many items in short turns, so that the page or program that it shares a thread with goes on. */
import type { Network } from '@posthouse/protocol';

/** Items of one turn: a few at once, if the platform computes them on several threads. */
const turnSize = { here: 2, onPlatform: 8 };

/**
 * Runs pure work on each item, in order, with a turn of the event loop after every few.
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

/** Yields items by turn, and ends the turn of the event loop between two of them. */
export async function* inTurns<Item>(
  { primitives }: Network,
  items: readonly Item[],
): AsyncGenerator<readonly Item[]> {
  const size = primitives.asynchronous === undefined ? turnSize.here : turnSize.onPlatform;
  for (let start = 0; start < items.length; start += size) {
    if (start > 0) await nextTurn();
    yield items.slice(start, start + size);
  }
}

/** Resolves in the next turn of the event loop, without the delay of nested timers. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (globalThis.MessageChannel === undefined) {
      setTimeout(resolve, 0);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
