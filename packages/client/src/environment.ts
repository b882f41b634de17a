/** Time and chance come in as parameters; the defaults stand here, at the edge. */
import type { Random } from '@posthouse/protocol/crypto';

/** What the client knows of time. Tests drive it. */
export interface Clock {
  /** Unix milliseconds. */
  milliseconds(): number;
  /** Resolves after so many milliseconds; rejects with the signal's reason when it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** UTC Unix seconds, as the protocol counts instants (01 P6). */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock.milliseconds() / 1_000);
}

/** The longest delay a timer takes; longer ones would fire at once. */
const longestTimer = 0x7fff_ffff;

/** The machine's clock. */
export const systemClock: Clock = {
  milliseconds: () => Date.now(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        },
        Math.min(Math.max(milliseconds, 0), longestTimer),
      );
      signal?.addEventListener('abort', stop, { once: true });
    }),
};

/** Secure random bytes of the platform's Web Crypto, in browsers and in Node. */
export const webRandom: Random = (length) => crypto.getRandomValues(new Uint8Array(length));

/** A fraction in [0, 1), from the random source that is passed in. */
export function randomFraction(random: Random): number {
  const [a, b, c, d] = random(4) as unknown as [number, number, number, number];
  return (a * 0x1_00_00_00 + b * 0x1_00_00 + c * 0x1_00 + d) / 0x1_00_00_00_00;
}
