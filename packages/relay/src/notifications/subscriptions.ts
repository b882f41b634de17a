import { badRequest } from '@posthouse/protocol';
import type { ConnectionBinding, SubscriptionKind, SubscriptionRequest } from '../dispatch/call.ts';
import type { HintQueue } from './hint-queue.ts';
import type { Listener } from './listener.ts';
import type { TopicListeners } from './subscribers.ts';

type Confirm = Parameters<ConnectionBinding['setSubscriptions']>[1];

export interface SubscriptionsParts {
  readonly kind: SubscriptionKind;
  /** The listeners of all groups, or of all channels. */
  readonly listeners: TopicListeners;
  /** The connection, and its unsent hints. */
  readonly listener: Listener & { readonly dead: boolean };
  readonly hints: HintQueue;
}

/** The set of groups, or of channels, that one connection subscribes to (02 §13). */
export class Subscriptions {
  readonly #parts: SubscriptionsParts;
  readonly #ids = new Set<string>();
  /** The latest replacement; the next one starts after it. */
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(parts: SubscriptionsParts) {
    this.#parts = parts;
  }

  /** @see ConnectionBinding */
  async replace(request: SubscriptionRequest, confirm: Confirm): Promise<void> {
    const replaced = this.#last.then(() => this.#replace(request, confirm));
    this.#last = replaced.catch(() => {});
    await replaced;
  }

  leave(id: string): void {
    this.#ids.delete(id);
    this.#parts.listeners.leave(this.#parts.listener, id);
    this.#parts.hints.forget(id);
  }

  /** Ends all subscriptions, also those being added. */
  end(): void {
    this.#isOver = true;
    for (const id of [...this.#ids]) this.leave(id);
  }

  async #replace({ ids, limit }: SubscriptionRequest, confirm: Confirm): Promise<void> {
    const adds = ids.some((id) => !this.#ids.has(id));
    if (adds && ids.length > limit) {
      throw badRequest(`${this.#parts.kind}_ids`, `at most ${limit}`);
    }
    // A change between `confirm` and the join is sent to the listener when it joins.
    using _expected = this.#parts.listeners.expect(ids);
    this.#apply(await confirm());
  }

  #apply(confirmed: ReadonlyMap<string, number>): void {
    const { listeners, listener, hints } = this.#parts;
    // The connection or its session ended meanwhile.
    if (this.#isOver || listener.dead) return;
    for (const id of [...this.#ids]) {
      if (!confirmed.has(id)) this.leave(id);
    }
    for (const [id, sequence] of confirmed) {
      if (!this.#ids.has(id)) hints.startAt(id, sequence);
      this.#ids.add(id);
      listeners.join(listener, id, sequence);
    }
  }
}
