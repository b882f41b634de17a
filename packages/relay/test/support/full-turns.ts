import { vi } from 'vitest';
import { StepTurns } from '../../src/step-turns.ts';

/** Makes each step of divided work take all the time of its turn of the event loop, until disposed. */
export function fullTurns(): Disposable {
  let time = performance.now();
  const now = vi.spyOn(performance, 'now').mockImplementation(() => {
    time += 1_000;
    return time;
  });
  return { [Symbol.dispose]: () => now.mockRestore() };
}

/** Lets one turn of the event loop pass. */
export function turn(): Promise<void> {
  return new Promise((go) => setImmediate(go));
}

/**
 * Counts the turns of the event loop, until it is disposed.
 *
 * @example
 * using turns = countTurns();
 * await turn();
 * turns.count; // 1
 */
export function countTurns(): { readonly count: number } & Disposable {
  let count = 0;
  const next = () => {
    count += 1;
    counting = setImmediate(next);
  };
  let counting = setImmediate(next);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => clearImmediate(counting),
  };
}

/**
 * Holds the steps that the work begins: they wait for their turn, which comes after the release.
 *
 * @param work begins them before it returns
 * @returns the owners of the steps, and what releases the steps
 * @example
 * const { owners, release } = holdSteps(() => relay.clock.advance(30));
 */
export function holdSteps(work: () => void): { owners: string[]; release: () => void } {
  const held: { readonly owner: string; readonly begin: () => void }[] = [];
  const { run } = StepTurns.prototype;
  const spy = vi.spyOn(StepTurns.prototype, 'run').mockImplementation(function (
    this: StepTurns,
    owner,
    step,
  ) {
    held.push({ owner, begin: () => run.call(this, owner, step) });
  });
  work();
  spy.mockRestore();
  return {
    owners: held.map(({ owner }) => owner),
    release: () => {
      for (const { begin } of held.splice(0)) begin();
    },
  };
}
