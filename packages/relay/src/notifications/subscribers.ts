import type { Listener } from './listener.ts';

/** In place of a sequence: the last check found no right to read. Below every sequence. */
export const noAccess = -1;

/** The connections of this process that subscribe to one group or channel. */
export interface Subscribers {
  readonly id: string;
  /** Each with the sequence at which its right to read was last confirmed, or {@link noAccess}. */
  readonly listeners: Map<Listener, number>;
  /** The head that every listener was notified of, or is about to be; -1 for none yet. */
  head: number;
  /** Number of subscribe calls in progress that may add listeners. */
  expected: number;
}

/** Accepts subscriptions to groups, or to channels. */
export interface TopicListeners {
  /** Subscriptions of all connections of this process. */
  readonly count: number;
  /** Returns the number of those of one account. */
  countOf(account: string): number;
  /** Returns the IDs that have listeners in this process. */
  ids(): string[];
  /** Until the result is disposed of, tracks notices of these IDs for listeners that join. */
  expect(ids: readonly string[]): Disposable;
  /**
   * Adds a listener.
   * @param confirmedAt sequence of the timeline at which its right to read was confirmed
   */
  join(listener: Listener, id: string, confirmedAt: number): void;
  /** Counts the subscriptions of a listener no more: its connection is gone, and they end soon. */
  uncount(listener: Listener, subscriptions: number): void;
  /** Removes a listener. */
  leave(listener: Listener, id: string): void;
}

/** The subscribers of groups, or of channels, by ID; an entry exists only while it has listeners. */
export class SubscriberMap<A extends Subscribers> {
  readonly #all = new Map<string, A>();
  readonly #make: (empty: Subscribers) => A;
  readonly #removed: (entry: A) => void;
  /** Subscriptions of each account that has some. */
  readonly #byAccount = new Map<string, number>();
  #count = 0;
  readonly #uncounted = new WeakSet<Listener>();

  constructor(make: (empty: Subscribers) => A, removed: (entry: A) => void) {
    this.#make = make;
    this.#removed = removed;
  }

  /** @see TopicListeners */
  get count(): number {
    return this.#count;
  }

  /** @see TopicListeners */
  countOf(account: string): number {
    return this.#byAccount.get(account) ?? 0;
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
    const expected = ids.map((id) => this.#getOrCreate(id));
    for (const entry of expected) entry.expected += 1;
    return {
      [Symbol.dispose]: () => {
        for (const entry of expected) {
          entry.expected -= 1;
          this.#removeIfUnused(entry);
        }
      },
    };
  }

  /** @returns the subscribers, if the listener must be notified of their current head */
  join(listener: Listener, id: string, confirmedAt: number): A | undefined {
    const entry = this.#getOrCreate(id);
    const { listeners } = entry;
    const before = listeners.get(listener) ?? noAccess;
    // The first listener has read up to `confirmedAt`.
    if (listeners.size === 0) entry.head = Math.max(entry.head, confirmedAt);
    if (!listeners.has(listener)) this.#add(listener.account, 1);
    listeners.set(listener, Math.max(before, confirmedAt));
    return before === noAccess && confirmedAt < entry.head ? entry : undefined;
  }

  /** @see TopicListeners */
  uncount(listener: Listener, subscriptions: number): void {
    this.#uncounted.add(listener);
    this.#add(listener.account, -subscriptions);
  }

  leave(listener: Listener, id: string): void {
    const entry = this.#all.get(id);
    if (entry === undefined) return;
    const wasThere = entry.listeners.delete(listener);
    if (wasThere && !this.#uncounted.has(listener)) this.#add(listener.account, -1);
    this.#removeIfUnused(entry);
  }

  #add(account: string, change: number): void {
    this.#count += change;
    const ofAccount = this.countOf(account) + change;
    if (ofAccount === 0) this.#byAccount.delete(account);
    else this.#byAccount.set(account, ofAccount);
  }

  #getOrCreate(id: string): A {
    const known = this.#all.get(id);
    if (known !== undefined) return known;
    const entry = this.#make({ id, listeners: new Map(), head: -1, expected: 0 });
    this.#all.set(id, entry);
    return entry;
  }

  #removeIfUnused(entry: A): void {
    if (entry.listeners.size > 0 || entry.expected > 0) return;
    this.#all.delete(entry.id);
    this.#removed(entry);
  }
}
