/** Computes on the page's thread in short turns, so that the page goes on in between. */
import { nextTurn } from '../crypto/next-turn.ts';

/** Milliseconds of computing after which other tasks of the page have their turn. */
const turnTime = 10;

/**
 * Returns a function that runs computations one after the other, and ends the turn of the event loop
 * after each {@link turnTime}: how many fit in depends on the engine and the machine.
 */
export function shortTurns(): <Result>(compute: () => Result) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let begun = Number.NEGATIVE_INFINITY;
  return (compute) => {
    const result = last.then(async () => {
      if (performance.now() - begun >= turnTime) {
        await nextTurn();
        begun = performance.now();
      }
      return compute();
    });
    last = result.catch(() => undefined);
    return result;
  };
}
