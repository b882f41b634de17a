import type { Listener } from './listener.ts';

/** Something that somebody here subscribed. */
export interface Subscribers {
  readonly id: string;
  /** Each with the sequence at which its right to hear was last confirmed. */
  readonly listeners: Map<Listener, number>;
  /** What every listener was told of, or is about to be; -1 for nothing yet. */
  head: number;
  /** Subscriptions under way that may add to the listeners. */
  expected: number;
}

/** Where connections subscribe things of one kind. */
export interface TopicListeners {
  /** Those that somebody here subscribed. */
  ids(): string[];
  /** From now on, until it is disposed of, notices of these are kept for those who join. */
  expect(ids: readonly string[]): Disposable;
  /** @param confirmedAt sequence of the timeline when the right to hear of it was seen */
  join(listener: Listener, id: string, confirmedAt: number): void;
  leave(listener: Listener, id: string): void;
}

/** Things of one kind that connections here subscribed, by ID: nothing is kept of any other. */
export class SubscriberMap<A extends Subscribers> {
  readonly #all = new Map<string, A>();
  readonly #make: (empty: Subscribers) => A;
  readonly #forgotten: (audience: A) => void;

  constructor(make: (empty: Subscribers) => A, removed: (audience: A) => void) {
    this.#make = make;
    this.#forgotten = removed;
  }

  get(id: string): A | undefined {
    return this.#all.get(id);
  }

  ids(): string[] {
    return [...this.#all.values()]
      .filter(({ listeners }) => listeners.size > 0)
      .map(({ id }) => id);
  }

  /** @see TopicListeners */
  expect(ids: readonly string[]): Disposable {
    const expected = ids.map((id) => this.#obtain(id));
    for (const audience of expected) audience.expected += 1;
    return {
      [Symbol.dispose]: () => {
        for (const audience of expected) {
          audience.expected -= 1;
          this.#forgetUnheard(audience);
        }
      },
    };
  }

  /** @returns the audience, where the listener is new to it and lacks something it was told */
  join(listener: Listener, id: string, confirmedAt: number): A | undefined {
    const audience = this.#obtain(id);
    const { listeners } = audience;
    const before = listeners.get(listener);
    // Nobody lacks what the first one has seen.
    if (listeners.size === 0) audience.head = Math.max(audience.head, confirmedAt);
    listeners.set(listener, Math.max(before ?? -1, confirmedAt));
    return before === undefined && confirmedAt < audience.head ? audience : undefined;
  }

  leave(listener: Listener, id: string): void {
    const audience = this.#all.get(id);
    if (audience === undefined) return;
    audience.listeners.delete(listener);
    this.#forgetUnheard(audience);
  }

  #obtain(id: string): A {
    const known = this.#all.get(id);
    if (known !== undefined) return known;
    const audience = this.#make({ id, listeners: new Map(), head: -1, expected: 0 });
    this.#all.set(id, audience);
    return audience;
  }

  #forgetUnheard(audience: A): void {
    if (audience.listeners.size > 0 || audience.expected > 0) return;
    this.#all.delete(audience.id);
    this.#forgotten(audience);
  }
}
