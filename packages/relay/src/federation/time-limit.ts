import type { Clock } from '../context.ts';

/** A signal that aborts after a time or with another signal, until it is disposed. */
export interface TimeLimit extends Disposable {
  readonly signal: AbortSignal;
  /** Whether the time has passed. */
  readonly isOver: boolean;
}

/**
 * Starts a time limit.
 *
 * @param milliseconds by the relay's clock
 * @param signals abort it earlier
 */
export function timeLimit(
  clock: Pick<Clock, 'after'>,
  milliseconds: number,
  ...signals: readonly AbortSignal[]
): TimeLimit {
  const controller = new AbortController();
  let isOver = false;
  const timer = clock.after(milliseconds, () => {
    isOver = true;
    controller.abort(new Error('the time limit has passed'));
  });
  return {
    signal: AbortSignal.any([controller.signal, ...signals]),
    get isOver() {
      return isOver;
    },
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  };
}
