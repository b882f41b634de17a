/** What happened in a simulation, in order, as a digest and as text. */
import { createHash } from 'node:crypto';

/** Lines that a failure shows. */
const shownLines = 60;

/** A rule that a simulation broke. */
class RuleBroken extends Error {
  override readonly name = 'RuleBroken';
}

export class Journal {
  readonly #hash = createHash('sha256');
  readonly #now: () => number;
  readonly #shown: ((line: string) => void) | undefined;
  readonly #last: string[] = [];
  #lines = 0;
  #failure: Error | undefined;

  /**
   * @param now simulated milliseconds
   * @param shown called with each line
   */
  constructor(now: () => number, shown?: (line: string) => void) {
    this.#now = now;
    this.#shown = shown;
  }

  /** The first rule that was broken, or fault of the simulation itself. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get lines(): number {
    return this.#lines;
  }

  /** The newest lines. */
  get last(): readonly string[] {
    return this.#last;
  }

  record(text: string): void {
    const line = `${(this.#now() / 1_000).toFixed(4)} ${text}`;
    this.#hash.update(line).update('\n');
    this.#lines += 1;
    this.#last.push(line);
    if (this.#last.length > shownLines) this.#last.shift();
    this.#shown?.(line);
  }

  /** Notes that a rule is broken; the simulation ends. */
  broken(rule: string): void {
    this.failed(new RuleBroken(rule));
  }

  failed(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.record(`broken: ${this.#failure.message}`);
  }

  /** Notes a broken rule if `isKept` is false. */
  must(isKept: boolean, rule: () => string): void {
    if (!isKept) this.broken(rule());
  }

  /** The digest of all lines. */
  digest(): string {
    return this.#hash.copy().digest('hex').slice(0, 16);
  }
}
