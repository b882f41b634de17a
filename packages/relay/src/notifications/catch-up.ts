import { readEnds } from '../auth/index.ts';
import type { Notice } from '../call.ts';
import type { RelayContext } from '../context.ts';
import { catchUpFailed, caughtUp } from '../observability/events.ts';
import type { News } from '../subject.ts';
import type { Hub } from './hub.ts';

/** Accounts that are compared with storage in one snapshot. */
const portion = 100;

/** Milliseconds between comparisons. */
const intervals = { whole: 60_000, away: 5_000 } as const;

/**
 * Makes up for notices that never came: the bus was away, another process was cut off from it, or
 * died between a commit and its notices. Compares the connections of this process with storage: at
 * each `gap`, often while the bus is away, and now and then otherwise. What a connection has heard
 * already it is not told again; a relay of one process has nothing to catch up with.
 */
export class CatchUp implements AsyncDisposable {
  readonly #context: RelayContext;
  readonly #hub: Hub;
  readonly #news: readonly News[];
  readonly #subscription: Disposable | undefined;
  #timer: Disposable | undefined;
  #running: Promise<void> | undefined;
  #isDue = false;
  #isStopping = false;

  constructor(
    context: RelayContext,
    { hub, news }: { readonly hub: Hub; readonly news: readonly News[] },
  ) {
    this.#context = context;
    this.#hub = hub;
    this.#news = news;
    if (!context.bus.isShared) return;
    this.#subscription = context.bus.subscribe((notice) => {
      if (notice.kind === 'gap') this.#wake();
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
    const wait = succeeded && bus.isWhole ? intervals.whole : intervals.away;
    this.#timer = clock.after(wait, () => this.#wake());
  }

  async #compareAll(): Promise<boolean> {
    const accounts = this.#hub.accounts();
    try {
      for (let start = 0; start < accounts.length && !this.#isStopping; start += portion) {
        await this.#compare(accounts.slice(start, start + portion));
      }
      caughtUp(this.#context);
      return true;
    } catch (error) {
      catchUpFailed(this.#context, error);
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
      for (const tell of this.#news) found.notices.push(...(await tell(tx, accounts, place)));
      return found;
    });
    for (const { listener, id } of seen) {
      // A session that was renewed meanwhile was not looked at.
      if (listener.session.id !== id) continue;
      const end = ends.get(id);
      if (end === undefined) listener.revoke();
      else listener.cap(end);
    }
    for (const notice of notices) this.#hub.tell(notice);
  }
}
