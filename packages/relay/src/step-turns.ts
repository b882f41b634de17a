import { TurnTime } from './event-loop.ts';
import { Rotation } from './rotation.ts';

/** Steps in one turn, at most: what follows a step is done after all of them, and is not in their time. */
const stepsOfTurn = 8;

/** Does a small part of the work; returns whether the next one may be done. */
type Step = () => boolean;

interface Waiting {
  readonly owner: string;
  readonly step: Step;
}

/**
 * Divides one kind of work over turns of the event loop: what follows when it has taken its time of a turn is done in
 * the next ones, a few steps in each, in rotation of the owners (0019).
 */
export class StepTurns {
  readonly #waiting = new Rotation<Waiting>();
  #time: TurnTime | undefined;
  /** Resolved when nothing waits. */
  #idle: PromiseWithResolvers<void> | undefined;

  /** Takes steps until one returns `false`: now, as long as this turn has time, and then in later ones. */
  run(owner: string, step: Step): void {
    const time = this.#turn();
    while (this.#waiting.isEmpty && !time.isOver) if (!step()) return;
    this.#waiting.add(owner, { owner, step });
  }

  /** Resolves when the owner may do one step. */
  take(owner: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.run(owner, () => {
      resolve();
      return false;
    });
    return promise;
  }

  /** Resolves when nothing waits for a turn. */
  async idle(): Promise<void> {
    if (this.#waiting.isEmpty) return;
    this.#idle ??= Promise.withResolvers();
    await this.#idle.promise;
  }

  #turn(): TurnTime {
    if (this.#time === undefined) {
      this.#time = new TurnTime();
      setImmediate(() => this.#nextTurn());
    }
    return this.#time;
  }

  #nextTurn(): void {
    this.#time = undefined;
    if (this.#waiting.isEmpty) return;
    const time = this.#turn();
    for (let count = 0; count === 0 || (count < stepsOfTurn && !time.isOver); count += 1) {
      const next = this.#waiting.take();
      if (next === undefined) break;
      if (next.step()) this.#waiting.add(next.owner, next);
    }
    if (!this.#waiting.isEmpty) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }
}
