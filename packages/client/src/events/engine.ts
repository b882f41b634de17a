/**
 * Following an account once per store: of all programs that follow it, one holds the lock of the
 * store and reads from the relays. The others read the events that it records.
 */
import '../dispose-symbols.ts';
import type { AccountCore } from '../core.ts';
import { eventMarks, forgetConnection } from './event-log.ts';

/** Options of one reader. */
interface EngineOptions {
  readonly pollInterval: number;
}

/** Follows the account until the signal aborts. @throws ClientError that a retry cannot solve */
export type FollowAccount = (options: EngineOptions, signal: AbortSignal) => Promise<void>;

/** One reader's part in a running engine. */
export interface EngineShare {
  /** Settles when the engine ends, with its error if there is one. */
  readonly ended: Promise<void>;
  /** Ends the engine with its last reader; resolves when it has ended. */
  leave(): Promise<void>;
}

export class Engine {
  readonly #core: AccountCore;
  readonly #follow: FollowAccount;
  #current: RunningEngine | undefined;

  constructor(core: AccountCore, follow: FollowAccount) {
    this.#core = core;
    this.#follow = follow;
  }

  /** Joins the running engine of this client, or starts one. */
  join(options: EngineOptions): EngineShare {
    const current = this.#current ?? this.#start();
    const { readers, stop, ended } = current;
    readers.add(options);
    const leave = async () => {
      readers.delete(options);
      if (readers.size > 0) return;
      if (this.#current === current) this.#current = undefined;
      stop.abort();
      await ended.catch(() => undefined);
    };
    return { ended, leave };
  }

  #start(): RunningEngine {
    const readers = new Set<EngineOptions>();
    const stop = new AbortController();
    const ended = this.#run(readers, AbortSignal.any([stop.signal, this.#core.closed]));
    const current: RunningEngine = { readers, stop, ended };
    this.#current = current;
    const forget = () => {
      if (this.#current === current) this.#current = undefined;
    };
    ended.then(forget, forget);
    return current;
  }

  async #run(readers: ReadonlySet<EngineOptions>, signal: AbortSignal): Promise<void> {
    const { store } = this.#core;
    let lock: Disposable | undefined;
    let isFollowing = false;
    let watch: Disposable | undefined;
    try {
      lock = await store.lock?.('follow', { signal });
      isFollowing = true;
      watch = await this.#watchHosted();
      const options = {
        get pollInterval() {
          return Math.min(...[...readers].map(({ pollInterval }) => pollInterval));
        },
      };
      await this.#follow(options, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watch?.[Symbol.dispose]();
      if (isFollowing) await store.write(forgetConnection).catch(() => undefined);
      lock?.[Symbol.dispose]();
    }
  }

  /** Wakes the follower when another program joined a group or follows a channel. */
  async #watchHosted(): Promise<Disposable | undefined> {
    const { store, wakeSignal } = this.#core;
    const newest = async () => (await store.read(eventMarks)).hosted;
    let seen = await newest();
    const look = async () => {
      const before = seen;
      seen = await newest();
      if (seen > before) wakeSignal.wake();
    };
    return store.watch?.(() => void look().catch(() => undefined));
  }
}

interface RunningEngine {
  readonly readers: Set<EngineOptions>;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}
