/** Time and randomness are parameters; their defaults are here. */
import type { Random } from '@posthouse/protocol/crypto';

/** Time and waiting, as the client uses them; tests pass their own. */
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

/** Longest delay of a timer; longer ones would fire at once. */
const longestTimer = 0x7fff_ffff;

/**
 * The clock of the machine.
 *
 * @example
 * import { systemClock } from '@posthouse/client';
 * await systemClock.sleep(1_000);
 */
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

/**
 * Returns secure random bytes of Web Crypto, in browsers and in Node.
 *
 * @example
 * import { webRandom } from '@posthouse/client';
 * const key = webRandom(32);
 */
export const webRandom: Random = (length) => crypto.getRandomValues(new Uint8Array(length));

/** Returns a number in [0, 1) made from four random bytes. */
export function randomFraction(random: Random): number {
  const [a, b, c, d] = random(4) as unknown as [number, number, number, number];
  return (a * 0x1_00_00_00 + b * 0x1_00_00 + c * 0x1_00 + d) / 0x1_00_00_00_00;
}
