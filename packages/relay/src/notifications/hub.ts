import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { Queue } from '../queue.ts';
import { AccountListeners } from './account-listeners.ts';
import type { ChannelListeners } from './channel-listeners.ts';
import { FairScheduler } from './fair-scheduler.ts';
import type { GroupListeners } from './group-listeners.ts';
import type { Listener } from './listener.ts';

/** The listeners of topics that need a subscription. */
export interface ListenersByKind {
  readonly group: GroupListeners;
  readonly channel: ChannelListeners;
}

/** The connections of this process that are bound to a session; passes notices of the bus on to them. */
export class Hub implements Disposable {
  readonly listeners: ListenersByKind;
  readonly #context: Pick<RelayContext, 'bus' | 'clock'>;
  readonly #scheduler: FairScheduler;
  readonly #byAccount = new Map<string, AccountListeners>();
  /** What ends the subscriptions of connections that are gone; it waits for no hint. */
  readonly #ends = new Queue<() => void>();
  readonly #endScheduler: FairScheduler;
  #isEnding = false;
  readonly #subscription: Disposable;

  constructor(
    context: Pick<RelayContext, 'bus' | 'clock'>,
    subscribed: ListenersByKind,
    scheduler = new FairScheduler(context.clock),
  ) {
    this.listeners = subscribed;
    this.#context = context;
    this.#scheduler = scheduler;
    this.#endScheduler = new FairScheduler(context.clock);
    this.#subscription = context.bus.subscribe((notice) => this.notify(notice));
  }

  /** Adds a connection. */
  add(listener: Listener): void {
    const { account } = listener;
    const listeners =
      this.#byAccount.get(account) ?? new AccountListeners(this.#context.clock, this.#scheduler);
    listeners.add(listener);
    this.#byAccount.set(account, listeners);
  }

  /** Removes a connection. */
  remove(listener: Listener): void {
    const listeners = this.#byAccount.get(listener.account);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#byAccount.delete(listener.account);
  }

  /** Calls what ends the subscriptions of a connection that is gone; of many, in turns of the event loop. */
  endSoon(end: () => void): void {
    this.#ends.push(end);
    if (!this.#isEnding) void this.#endAll();
  }

  /** Returns the accounts with connections to this process. */
  accounts(): string[] {
    return [...this.#byAccount.keys()];
  }

  /** Returns a copy of an account's connections: a revoked one is removed during iteration. */
  listenersOf(account: string): Listener[] {
    return this.#byAccount.get(account)?.all() ?? [];
  }

  /** Passes a notice on to the connections it concerns; called for every notice of the bus. */
  notify(notice: Notice): void {
    if ('account' in notice) this.#byAccount.get(notice.account)?.notify(notice);
    else if ('group' in notice) this.listeners.group.notify(notice);
    else if ('channel' in notice) this.listeners.channel.notify(notice);
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  async #endAll(): Promise<void> {
    this.#isEnding = true;
    while (this.#ends.size > 0) await this.#endScheduler.each(taken(this.#ends), (end) => end());
    this.#isEnding = false;
  }
}

/** Takes items, also those that are added meanwhile, until there are none. */
function* taken<T>(queue: Queue<T>): Generator<T> {
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) yield item;
}
