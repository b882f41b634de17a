import type { Readable } from 'node:stream';
import type { Clock } from '../context.ts';

/**
 * Calls a function with each line of a stream.
 *
 * @param most characters of a line; what follows of a longer one is dropped
 * @param take is told whether the line was longer
 */
export function readLines(
  stream: Readable,
  most: number,
  take: (line: string, isCut: boolean) => void,
): void {
  let line = '';
  let isCut = false;
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    const [first = '', ...others] = text.split('\n');
    const extend = (part: string) => {
      isCut ||= line.length + part.length > most;
      line += part.slice(0, most - line.length);
    };
    extend(first);
    for (const other of others) {
      take(line, isCut);
      line = '';
      isCut = false;
      extend(other);
    }
  });
  // Its end is that of the process, which is noticed anyway.
  stream.on('error', () => {});
}

/** Lets a number of lines pass in a minute, and counts the others. */
export class LinesOfMinute {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #most: number;
  #since: number;
  #passed = 0;
  #dropped = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, most: number) {
    this.#clock = clock;
    this.#most = most;
    this.#since = clock.monotonic();
  }

  /** Returns how many lines were dropped before this one; `undefined` if this one is dropped too. */
  pass(): number | undefined {
    const now = this.#clock.monotonic();
    if (now - this.#since >= 60_000) {
      this.#since = now;
      this.#passed = 0;
    }
    if (this.#passed >= this.#most) {
      this.#dropped += 1;
      return undefined;
    }
    this.#passed += 1;
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }
}
