import type { Clock } from './context.ts';

/** The machine's clock. Its timers keep no process alive. */
export const systemClock: Clock = {
  now: () => Math.floor(Date.now() / 1_000),
  monotonic: () => performance.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds).unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
