/**
 * Resolves in the next turn of the event loop, without the delay of nested timers.
 *
 * @example
 * import { nextTurn } from '@posthouse/protocol/crypto';
 * await nextTurn(); // other tasks of the page or program ran in between
 */
export function nextTurn(): Promise<void> {
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
