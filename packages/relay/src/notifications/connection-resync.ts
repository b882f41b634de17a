import type { RelayContext } from '../context.ts';
import type { AccountResync, SubscriptionResync } from '../dispatch/module.ts';
import type { Notice } from '../dispatch/notice.ts';
import { connectionsResynced, resyncFailed } from '../observability/events.ts';
import { readEnds } from '../sessions/session-store.ts';
import type { Hub } from './hub.ts';
import { applySessionEnd } from './recheck-queue.ts';

/** Accounts, and subscribed things, that are compared with storage in one snapshot. */
const accountBatchSize = 100;
const subscriptionBatchSize = 500;

/** Milliseconds between comparisons. */
const intervals = { whole: 60_000, away: 5_000 } as const;
/** Milliseconds between hints of what has no version, while the bus is away. */
const listInterval = 60_000;

/**
 * Makes up for notices that never came: the bus was away, another process was cut off from it, or
 * died between a commit and its notices. Compares the connections of this process with storage: at
 * each `gap`, often while the bus is away, and now and then otherwise. What a connection has heard
 * already it is not told again; a relay of one process has nothing to catch up with.
 */
export class ConnectionResync implements AsyncDisposable {
  readonly #context: RelayContext;
  readonly #hub: Hub;
  readonly #accountResyncs: readonly AccountResync[];
  readonly #subscriptionResyncs: readonly SubscriptionResync[];
  readonly #subscription: Disposable | undefined;
  #timer: Disposable | undefined;
  #running: Promise<void> | undefined;
  #isDue = false;
  /** Whether hints may have been lost since the lists were hinted last, and when that was. */
  #lacksLists = false;
  #listsAt = 0;
  #isStopping = false;

  constructor(
    context: RelayContext,
    parts: {
      readonly hub: Hub;
      readonly accountResyncs: readonly AccountResync[];
      readonly subscriptionResyncs: readonly SubscriptionResync[];
    },
  ) {
    this.#context = context;
    this.#hub = parts.hub;
    this.#accountResyncs = parts.accountResyncs;
    this.#subscriptionResyncs = parts.subscriptionResyncs;
    if (!context.bus.isShared) return;
    this.#subscription = context.bus.subscribe((notice) => {
      if (notice.kind !== 'gap') return;
      this.#lacksLists = true;
      this.#wake();
    });
    this.#schedule(true);
  }

  /** Lets the portion under way finish and begins no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#subscription?.[Symbol.dispose]();
    this.#timer?.[Symbol.dispose]();
    await this.#running;
  }

  #wake(): void {
    if (this.#isStopping) return;
    this.#isDue = true;
    this.#running ??= this.#run();
  }

  /** What falls due during a comparison may be too late for it, and asks for another. */
  async #run(): Promise<void> {
    let succeeded = true;
    while (this.#isDue && !this.#isStopping) {
      this.#isDue = false;
      this.#timer?.[Symbol.dispose]();
      succeeded = await this.#compareAll();
    }
    this.#running = undefined;
    if (!this.#isStopping) this.#schedule(succeeded);
  }

  #schedule(succeeded: boolean): void {
    const { bus, clock } = this.#context;
    const wait = succeeded && bus.isConnected ? intervals.whole : intervals.away;
    this.#timer = clock.after(wait, () => this.#wake());
  }

  async #compareAll(): Promise<boolean> {
    const accounts = this.#hub.accounts();
    try {
      for (let start = 0; start < accounts.length && !this.#isStopping; start += accountBatchSize) {
        await this.#compare(accounts.slice(start, start + accountBatchSize));
      }
      await this.#compareSubscribed();
      connectionsResynced(this.#context);
      return true;
    } catch (error) {
      resyncFailed(this.#context, error);
      return false;
    }
  }

  async #compare(accounts: readonly string[]): Promise<void> {
    const { storage, clock, identity } = this.#context;
    const listeners = accounts.flatMap((account) => this.#hub.listenersOf(account));
    const seen = listeners.map((listener) => ({ listener, id: listener.session.id }));
    const place = { relayId: identity.relayId, now: clock.now() };
    const { ends, notices } = await storage.read(async (tx) => {
      const ids = seen.map(({ id }) => id);
      const found = { ends: await readEnds(tx, ids), notices: [] as Notice[] };
      for (const tell of this.#accountResyncs)
        found.notices.push(...(await tell(tx, accounts, place)));
      return found;
    });
    for (const { listener, id } of seen) applySessionEnd(listener, id, ends);
    for (const notice of notices) this.#hub.notify(notice);
  }

  /** Sessions were compared before: whoever may not hear any more is gone. */
  async #compareSubscribed(): Promise<void> {
    const withLists = this.#takeLists();
    for (const { kind, notices: tell } of this.#subscriptionResyncs) {
      const ids = this.#hub.listeners[kind].ids();
      for (let start = 0; start < ids.length && !this.#isStopping; start += subscriptionBatchSize) {
        const some = ids.slice(start, start + subscriptionBatchSize);
        const notices = await this.#context.storage.read((tx) => tell(tx, some, { withLists }));
        for (const notice of notices) this.#hub.notify(notice);
      }
    }
  }

  /** While the bus is away, hints of lists are lost all the time. */
  #takeLists(): boolean {
    const { bus, clock } = this.#context;
    const isOld = !bus.isConnected && clock.monotonic() - this.#listsAt >= listInterval;
    const withLists = this.#lacksLists || isOld;
    this.#lacksLists = false;
    if (withLists) this.#listsAt = clock.monotonic();
    return withLists;
  }
}
