import type { RelayContext } from '../context.ts';
import { sessionEndsUnread } from '../observability/events.ts';
import type { SessionCache } from '../sessions/session-cache.ts';
import {
  readLastSessionEnd,
  readSessionEnds,
  type SessionEnds,
} from '../sessions/session-ends-store.ts';
import { readEnds } from '../sessions/session-store.ts';
import type { Reader } from '../storage/types.ts';
import type { Hub } from './hub.ts';
import { applySessionEnd } from './recheck-queue.ts';

type Context = Pick<RelayContext, 'bus' | 'clock' | 'limits' | 'log' | 'metrics' | 'storage'>;

/** Connections whose sessions are read in one snapshot. */
const batchSize = 500;

/**
 * Reads several times a second which sessions ended, and ends them in this process: with the notices
 * lost, with the process that removed a device dead, and after this process was stopped, a removed
 * device is served for no longer than `limits.sessionTrust`. A relay of one process needs no reading.
 */
export class SessionEndsReader implements AsyncDisposable {
  readonly #context: Context;
  readonly #hub: Hub;
  readonly #sessions: Pick<SessionCache, 'sessionsEnded'>;
  #last = 0;
  #timer: Disposable | undefined;
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(
    context: Context,
    parts: { readonly hub: Hub; readonly sessions: Pick<SessionCache, 'sessionsEnded'> },
  ) {
    this.#context = context;
    this.#hub = parts.hub;
    this.#sessions = parts.sessions;
  }

  /** Starts to read; resolves after the first reading. */
  async start(): Promise<void> {
    const { bus, clock, storage } = this.#context;
    if (!bus.isShared) return;
    const asOf = clock.monotonic();
    this.#last = await storage.read(readLastSessionEnd);
    this.#sessions.sessionsEnded({ accounts: [], asOf });
    this.#schedule();
  }

  /** Lets the current reading finish and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#timer?.[Symbol.dispose]();
    await this.#running;
  }

  #schedule(): void {
    const { clock, limits } = this.#context;
    if (this.#isStopping) return;
    this.#timer = clock.after(limits.sessionCheck, () => {
      this.#running = this.#run().finally(() => this.#schedule());
    });
  }

  async #run(): Promise<void> {
    try {
      while (await this.#readOnce());
    } catch (error) {
      // Sessions in memory are soon not trusted any more; every call reads its own.
      sessionEndsUnread(this.#context, error);
    }
  }

  /** Returns whether there may be more to read. */
  async #readOnce(): Promise<boolean> {
    const { clock, storage } = this.#context;
    const asOf = clock.monotonic();
    const { accounts, last, hasMore } = await storage.read((tx) => readSessionEnds(tx, this.#last));
    await this.#endSessions(accounts);
    this.#last = last;
    this.#sessions.sessionsEnded({ accounts, ...(!hasMore && { asOf }) });
    return hasMore;
  }

  async #endSessions(accounts: SessionEnds['accounts']): Promise<void> {
    const here = accounts === 'any' ? this.#hub.accounts() : accounts;
    const listeners = here.flatMap((account) => this.#hub.listenersOf(account));
    for (let start = 0; start < listeners.length; start += batchSize) {
      const seen = listeners
        .slice(start, start + batchSize)
        .map((listener) => ({ listener, id: listener.session.id }));
      const ids = seen.map(({ id }) => id);
      const ends = await this.#context.storage.read((tx: Reader) => readEnds(tx, ids));
      for (const { listener, id } of seen) applySessionEnd(listener, id, ends);
    }
  }
}
