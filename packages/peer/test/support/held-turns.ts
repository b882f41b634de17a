import type { WorkTurns } from '../../src/index.ts';

/** Takes a step of what waits only when a test says so, and knows whose it is. */
export class HeldTurns implements WorkTurns {
  readonly #waiting: { readonly owner: string; readonly step: () => boolean }[] = [];
  #isOpen = true;

  run(owner: string, step: () => boolean): void {
    this.#waiting.push({ owner, step });
    while (this.#isOpen && this.take());
  }

  /** Owners of what waits. */
  get owners(): readonly string[] {
    return this.#waiting.map(({ owner }) => owner);
  }

  /** From now on steps wait. */
  hold(): void {
    this.#isOpen = false;
  }

  /** Takes all steps that wait, and from now on each at once. */
  release(): void {
    this.#isOpen = true;
    while (this.take());
  }

  /** Takes one step; returns whether there was one. */
  take(): boolean {
    const next = this.#waiting.shift();
    if (next === undefined) return false;
    if (next.step()) this.#waiting.push(next);
    return true;
  }
}
