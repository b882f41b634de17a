/** Time of intervals and timers; tests pass their own. A relay's clock is one. */
export interface PeerClock {
  /** Milliseconds that never go back. */
  monotonic(): number;
  /** Runs `work` once after so many milliseconds, until the result is disposed. */
  after(milliseconds: number, work: () => void): Disposable;
}

/** The machine's clock. Its timers keep no process alive. */
export const systemClock: PeerClock = {
  monotonic: () => performance.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds).unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
