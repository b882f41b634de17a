import { badRequest } from '@posthouse/protocol';
import type { ConnectionBinding, SubscriptionKind, SubscriptionRequest } from '../dispatch/call.ts';
import type { HintQueue } from './hint-queue.ts';
import type { Listener } from './listener.ts';
import type { TopicListeners } from './subscribers.ts';

type Confirm = Parameters<ConnectionBinding['setSubscriptions']>[1];

export interface SubscriptionsParts {
  readonly kind: SubscriptionKind;
  /** Where things of this kind are subscribed. */
  readonly listeners: TopicListeners;
  /** The connection, and what is on its way to it. */
  readonly listener: Listener & { readonly dead: boolean };
  readonly hints: HintQueue;
}

/** What one connection hears of, of one kind (02 §13). */
export class Subscriptions {
  readonly #parts: SubscriptionsParts;
  readonly #ids = new Set<string>();
  /** The last replacement that was asked for. */
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(parts: SubscriptionsParts) {
    this.#parts = parts;
  }

  /** @see ConnectionBinding */
  async replace(request: SubscriptionRequest, confirm: Confirm): Promise<void> {
    const turn = this.#last.then(() => this.#replace(request, confirm));
    this.#last = turn.catch(() => {});
    await turn;
  }

  leave(id: string): void {
    this.#ids.delete(id);
    this.#parts.listeners.leave(this.#parts.listener, id);
    this.#parts.hints.forget(id);
  }

  /** Ends all of them, and whatever is being added. */
  end(): void {
    this.#isOver = true;
    for (const id of [...this.#ids]) this.leave(id);
  }

  async #replace({ ids, limit }: SubscriptionRequest, confirm: Confirm): Promise<void> {
    const adds = ids.some((id) => !this.#ids.has(id));
    if (adds && ids.length > limit) {
      throw badRequest(`${this.#parts.kind}_ids`, `at most ${limit}`);
    }
    // What happens between the look and the joining is told to who joins.
    using _expected = this.#parts.listeners.expect(ids);
    this.#hearOf(await confirm());
  }

  #hearOf(confirmed: ReadonlyMap<string, number>): void {
    const { listeners, listener, hints } = this.#parts;
    // It ended while they were looked up.
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
