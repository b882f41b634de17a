import type { RelayContext } from '../context.ts';
import type { AccountResync, SubscriptionResync } from '../dispatch/module.ts';
import type { Notice } from '../dispatch/notice.ts';
import { connectionsResynced, resyncFailed } from '../observability/events.ts';
import { readEnds } from '../sessions/session-store.ts';
import { pauseAfter } from './fair-scheduler.ts';
import type { Hub } from './hub.ts';
import { applySessionEnd } from './recheck-queue.ts';

/** Accounts, and subscribed groups or channels, compared with storage in one snapshot. */
const accountBatchSize = 100;
const subscriptionBatchSize = 500;

/** Limit of aggregates that wait for a resync of their own; with more, everything is compared. */
const maxChanged = 10_000;

/** Milliseconds between resyncs. */
const intervals = { connected: 60_000, disconnected: 5_000 } as const;
/** Milliseconds between hints of lists, which have no version, while the bus is disconnected. */
const listInterval = 60_000;

/**
 * Compensates for lost notices: the bus was disconnected, or another process was, or it died between
 * a commit and its notices. Compares the connections of this process with storage: at each `gap`
 * notice, every 5 s while the bus is disconnected, and every 60 s otherwise; at a `gap` of some
 * aggregates, those that they concern. A hint that a connection had already is not sent again. A relay
 * with one process needs no resync.
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
  /** Aggregates of `gap` notices: `account:<id>`, `group:<id>`, `channel:<id>`. */
  #changed = new Set<string>();
  /** Whether hints of lists may have been lost since they were last sent, and when that was. */
  #mayLackLists = false;
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
      if (notice.aggregates === undefined) this.#addAll();
      else this.#add(notice.aggregates);
    });
    this.#schedule(true);
  }

  /** Lets the current batch finish and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#subscription?.[Symbol.dispose]();
    this.#timer?.[Symbol.dispose]();
    await this.#running;
  }

  #addAll(): void {
    this.#mayLackLists = true;
    this.#wake();
  }

  #add(aggregates: readonly string[]): void {
    for (const key of aggregates) this.#changed.add(key);
    if (this.#changed.size > maxChanged) this.#addAll();
    else if (!this.#isStopping) this.#running ??= this.#run();
  }

  #wake(): void {
    if (this.#isStopping) return;
    this.#isDue = true;
    this.#running ??= this.#run();
  }

  /** Repeats if a notice arrives during a resync, which may have read storage before it. */
  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const changed = this.#changed;
      if (!this.#isDue && changed.size === 0) break;
      this.#changed = new Set();
      if (this.#isDue) {
        this.#isDue = false;
        this.#schedule(await this.#attempt(() => this.#resyncAll()));
      } else if (!(await this.#attempt(() => this.#resyncSome([...changed]))))
        this.#schedule(false);
    }
    this.#running = undefined;
  }

  async #attempt(resync: () => Promise<void>): Promise<boolean> {
    try {
      await resync();
      return true;
    } catch (error) {
      resyncFailed(this.#context, error);
      return false;
    }
  }

  #schedule(succeeded: boolean): void {
    const { bus, clock } = this.#context;
    this.#timer?.[Symbol.dispose]();
    if (this.#isStopping) return;
    const wait = succeeded && bus.isConnected ? intervals.connected : intervals.disconnected;
    this.#timer = clock.after(wait, () => this.#wake());
  }

  async #resyncAll(): Promise<void> {
    await this.#resyncEachAccount(this.#hub.accounts());
    await this.#resyncSubscriptions();
    connectionsResynced(this.#context);
  }

  /** Compares the connections that these aggregates concern; others cost nothing. */
  async #resyncSome(aggregates: readonly string[]): Promise<void> {
    const began = this.#context.clock.monotonic();
    const idsOf = (kind: string) =>
      aggregates.flatMap((key) => (key.startsWith(`${kind}:`) ? key.slice(kind.length + 1) : []));
    const isHere = (account: string) => this.#hub.listenersOf(account).length > 0;
    await this.#resyncEachAccount(idsOf('account').filter(isHere));
    for (const resync of this.#subscriptionResyncs) {
      const subscribed = new Set(this.#hub.listeners[resync.kind].ids());
      const ids = idsOf(resync.kind).filter((id) => subscribed.has(id));
      await this.#resyncTopics(resync, { ids, withLists: true });
    }
    // Callers that repeat themselves must not take the time of others.
    await pauseAfter(this.#context.clock, began);
  }

  async #resyncEachAccount(accounts: readonly string[]): Promise<void> {
    for (let start = 0; start < accounts.length && !this.#isStopping; start += accountBatchSize) {
      await this.#resyncAccounts(accounts.slice(start, start + accountBatchSize));
    }
  }

  async #resyncAccounts(accounts: readonly string[]): Promise<void> {
    const { storage, clock, identity } = this.#context;
    const listeners = accounts.flatMap((account) => this.#hub.listenersOf(account));
    const seen = listeners.map((listener) => ({ listener, id: listener.session.id }));
    const at = { relayId: identity.relayId, now: clock.now() };
    const { ends, notices } = await storage.read(async (tx) => {
      const ids = seen.map(({ id }) => id);
      const found = { ends: await readEnds(tx, ids), notices: [] as Notice[] };
      for (const resync of this.#accountResyncs)
        found.notices.push(...(await resync(tx, accounts, at)));
      return found;
    });
    for (const { listener, id } of seen) applySessionEnd(listener, id, ends);
    for (const notice of notices) this.#hub.notify(notice);
  }

  /** Runs after the accounts: connections whose session ended are removed by then. */
  async #resyncSubscriptions(): Promise<void> {
    const withLists = this.#areListsDue();
    for (const resync of this.#subscriptionResyncs) {
      const ids = this.#hub.listeners[resync.kind].ids();
      await this.#resyncTopics(resync, { ids, withLists });
    }
  }

  async #resyncTopics(
    { notices: read }: SubscriptionResync,
    { ids, withLists }: { readonly ids: readonly string[]; readonly withLists: boolean },
  ): Promise<void> {
    for (let start = 0; start < ids.length && !this.#isStopping; start += subscriptionBatchSize) {
      const batch = ids.slice(start, start + subscriptionBatchSize);
      const notices = await this.#context.storage.read((tx) => read(tx, batch, { withLists }));
      for (const notice of notices) this.#hub.notify(notice);
    }
  }

  /** Returns whether lists are due: after a gap, and regularly while the bus is disconnected. */
  #areListsDue(): boolean {
    const { bus, clock } = this.#context;
    const isOld = !bus.isConnected && clock.monotonic() - this.#listsAt >= listInterval;
    const withLists = this.#mayLackLists || isOld;
    this.#mayLackLists = false;
    if (withLists) this.#listsAt = clock.monotonic();
    return withLists;
  }
}
