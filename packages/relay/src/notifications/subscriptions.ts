import { badRequest, ProtocolError } from '@posthouse/protocol';
import type { ConnectionBinding, SubscriptionKind, SubscriptionRequest } from '../dispatch/call.ts';
import type { HintQueue } from './hint-queue.ts';
import type { Listener } from './listener.ts';
import type { TopicListeners } from './subscribers.ts';

/** Seconds after which a refused subscription may be tried again. */
const retryAfter = 60;

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

  /** Adds no subscription any more, also none that is being added, and counts none for a limit. */
  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { listener, listeners } = this.#parts;
    if (this.#ids.size > 0) listeners.uncount(listener, this.#ids.size);
  }

  /** Ends all subscriptions of a connection whose hints are of no use any more. */
  end(): void {
    for (const id of this.#ids) this.#parts.listeners.leave(this.#parts.listener, id);
    this.#ids.clear();
  }

  async #replace(request: SubscriptionRequest, confirm: Confirm): Promise<void> {
    const { ids, limit } = request;
    const adds = ids.some((id) => !this.#ids.has(id));
    if (adds && ids.length > limit) {
      throw badRequest(`${this.#parts.kind}_ids`, `at most ${limit}`);
    }
    // A change between `confirm` and the join is sent to the listener when it joins.
    using _expected = this.#parts.listeners.expect(ids);
    this.#requireRoom(ids, request);
    const confirmed = await confirm();
    this.#requireRoom([...confirmed.keys()], request);
    this.#apply(confirmed);
  }

  /**
   * @throws ProtocolError `rate_limited` if additions exceed the share of the account, or the total of
   *   the process
   */
  #requireRoom(ids: readonly string[], { perAccount, total }: SubscriptionRequest): void {
    const added = ids.filter((id) => !this.#ids.has(id)).length;
    if (added === 0) return;
    const { listener, listeners } = this.#parts;
    const growth = ids.length - this.#ids.size;
    if (listeners.countOf(listener.account) + growth > perAccount) {
      throw refused('too many subscriptions of this account: end some of them');
    }
    if (listeners.count + growth > total) {
      throw refused('too many subscriptions at this relay: try again later');
    }
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

function refused(message: string): ProtocolError {
  return new ProtocolError('rate_limited', message, { data: { retry_after: retryAfter } });
}
