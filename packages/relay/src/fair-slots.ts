import { Rotation } from './rotation.ts';

/** A number of things that may be under way at once; the others wait, in rotation of their owners. */
export class FairSlots {
  readonly #limit: number;
  readonly #waiting = new Rotation<() => void>();
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether what is taken now would wait. */
  get isFull(): boolean {
    return this.#used >= this.#limit;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Returns how many of one owner wait. */
  waitingOf(owner: string): number {
    return this.#waiting.sizeOf(owner);
  }

  /** Takes a slot; returns a promise if it is the owner's turn only later. */
  take(owner: string): Promise<void> | undefined {
    if (this.isFull) return new Promise((resolve) => this.#waiting.add(owner, resolve));
    this.#used += 1;
    return undefined;
  }

  /** Gives a slot back: to the next that waits. */
  give(): void {
    const next = this.#waiting.take();
    if (next === undefined) this.#used -= 1;
    else next();
  }
}
