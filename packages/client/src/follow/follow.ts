/** Follows an account: its home relay, and every host of its groups and channels (02 §12). */
import { hasMovedFromAway, isAway, isWrongHome } from '../accounts/home-relay.ts';
import { channelRows, shouldReadChannel } from '../channels/channel-rows.ts';
import { backoff, isTemporary, retryHintOf } from '../connect/backoff.ts';
import type { WakeSource } from '../connect/waker.ts';
import type { AccountCore } from '../core.ts';
import { isClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import { groupRows } from '../groups/group-rows.ts';
import { shouldReadGroup } from '../groups/timeline/read-group.ts';
import { AsyncQueue } from '../sync/async-queue.ts';
import type { SyncScope } from '../sync/catch-up-hosts.ts';
import { type FollowedRelay, followRelay, hasTasks } from './follow-relay.ts';
import type { Hints } from './hints.ts';
import { idsToRead } from './subscribed-ids.ts';

/** Options of `Account.follow`. */
export interface FollowOptions {
  readonly signal: AbortSignal;
  /** Milliseconds between reads if a relay sends no notifications; 30,000 by default. */
  readonly pollInterval?: number;
  /**
   * Says when the network may be back: then the client tries to connect at once, and checks open
   * connections. `Account.wake` does the same.
   */
  readonly wake?: WakeSource;
}

/** What following needs from the account. */
export interface Followed {
  readonly core: AccountCore;
  /** Catches up everything in the scope, and yields events. */
  catchUp(signal: AbortSignal, scope: SyncScope): AsyncGenerator<readonly AccountEvent[]>;
  /** Resolves the account's home relay again. */
  refreshHome(signal: AbortSignal): Promise<void>;
}

const retry = { attempts: Number.POSITIVE_INFINITY, base: 500, cap: 60_000 };

/**
 * Yields events until the signal aborts. Lost connections are reconnected with backoff, and every
 * new connection begins by catching up, so that no event depends on a notification. Each relay is
 * followed separately: a slow relay does not delay the others.
 *
 * @throws ClientError of the home relay that a retry cannot solve, such as a removed device
 */
export async function* follow(
  followed: Followed,
  options: FollowOptions,
): AsyncGenerator<AccountEvent> {
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const queue = new AsyncQueue<AccountEvent>();
  const following = new AccountFollower(followed, { ...options, signal }, queue);
  const wakes = options.wake?.(() => followed.core.waker.wake());
  try {
    following.start();
    yield* queue.items();
  } finally {
    wakes?.[Symbol.dispose]();
    stop.abort();
    queue.discard();
    await following.stopped();
  }
}

interface FollowedHost {
  readonly stop: AbortController;
  hints?: Hints;
  /** Groups and channels to be read, when they were last compared. */
  ids: ReadonlySet<string>;
}

class AccountFollower {
  readonly #followed: Followed;
  readonly #options: Required<Omit<FollowOptions, 'wake'>>;
  readonly #queue: AsyncQueue<AccountEvent>;
  /** Followed hosts other than the home relay: their abort controllers and hints. */
  readonly #hosts = new Map<string, FollowedHost>();
  readonly #running = new Set<Promise<void>>();
  #homeId: string | undefined;
  /** The hints of the home relay's reader. */
  #homeHints: Hints | undefined;

  constructor(followed: Followed, options: FollowOptions, queue: AsyncQueue<AccountEvent>) {
    this.#followed = followed;
    this.#options = { pollInterval: 30_000, ...options };
    this.#queue = queue;
  }

  start(): void {
    this.#run(this.#followHome().then(() => this.#queue.close()));
  }

  async stopped(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Runs a follower in the background; its error ends the queue. */
  #run(work: Promise<void>): void {
    const safe = work
      .catch((error: unknown) => this.#queue.fail(error))
      .finally(() => this.#running.delete(safe));
    this.#running.add(safe);
  }

  async #followHome(): Promise<void> {
    const { core, refreshHome } = this.#followed;
    const { signal } = this.#options;
    let transport: 'websocket' | 'http' | undefined;
    for (let failures = 0; !signal.aborted; ) {
      const wakes = core.waker.count;
      try {
        if (transport === undefined)
          await this.#queue.put({ kind: 'connection', state: 'connecting' });
        const connection = await core.home();
        this.#homeId = connection.relayId;
        await this.#syncFollowedHosts();
        await followRelay(
          {
            ...this.#relay(connection.relayId, signal),
            isHome: true,
            started: async (kind) => {
              if (transport === kind) return;
              transport = kind;
              await this.#queue.put({ kind: 'connection', state: 'connected', transport });
            },
            caughtUp: async (hints) => {
              this.#homeHints = hints;
              const hasNewEvents = core.eventBuffer.isSignaled;
              for (const event of core.eventBuffer.take()) await this.#queue.put(event);
              await this.#syncFollowedHosts();
              // A buffered event may be about a group that must be subscribed now.
              if (hasNewEvents) for (const host of this.#hosts.values()) host.hints?.wake();
            },
            // Reset only after a response: a relay may accept connections and end them at once.
            responded: () => {
              failures = 0;
            },
          },
          signal,
        );
      } catch (error) {
        if (signal.aborted) return;
        // Without an answer it is asked again later; a relay that is away is waited for.
        if (isWrongHome(error)) await refreshHome(signal).catch(throwUnlessNoRelay);
        else if (isAway(error) && isTurnToAsk(failures)) await this.#askOthers(signal);
        else if (!mayRecover(error)) throw error;
        transport = undefined;
        failures += 1;
        const wait = this.#waitBefore(failures, error);
        const nextTryAt = core.clock.milliseconds() + wait;
        await this.#queue.put({ kind: 'connection', state: 'disconnected', error, nextTryAt });
        await this.#pause(wait, { error, wakes, signal });
      }
    }
  }

  /** Asks other relays whether the account moved; a wake ends that. */
  async #askOthers(signal: AbortSignal): Promise<void> {
    const { core } = this.#followed;
    const woken = new AbortController();
    const listener = core.waker.add(() => woken.abort());
    try {
      await hasMovedFromAway(core, AbortSignal.any([signal, woken.signal]));
    } catch (error) {
      if (!woken.signal.aborted) throw error;
    } finally {
      listener[Symbol.dispose]();
    }
  }

  /**
   * Starts followers of new hosts, stops those that are not needed any more, and wakes the others
   * if there is something new to read.
   */
  async #syncFollowedHosts(caller?: string): Promise<void> {
    const { core } = this.#followed;
    const wanted = await idsToRead(core);
    if (this.#homeId !== undefined) wanted.delete(this.#homeId);
    for (const [relayId, { stop }] of this.#hosts) {
      if (wanted.has(relayId)) continue;
      this.#hosts.delete(relayId);
      stop.abort();
    }
    for (const [relayId, ids] of wanted) {
      const host = this.#hosts.get(relayId);
      if (host !== undefined) {
        // Another own device may have shared a group by a message to this one.
        if (relayId !== caller && [...ids].some((id) => !host.ids.has(id))) host.hints?.wake();
        host.ids = ids;
      } else if (!this.#options.signal.aborted) {
        const stop = new AbortController();
        this.#hosts.set(relayId, { stop, ids });
        this.#run(this.#followHost(relayId, AbortSignal.any([this.#options.signal, stop.signal])));
      }
    }
  }

  /** Follows one host; its failures are reported for its own groups and channels only. */
  async #followHost(relayId: string, signal: AbortSignal): Promise<void> {
    const { core } = this.#followed;
    let isFirst = true;
    for (let failures = 0; !signal.aborted; ) {
      const wakes = core.waker.count;
      let hasBegun = false;
      try {
        await followRelay(
          {
            ...this.#relay(relayId, signal),
            isHome: false,
            started: async () => {
              hasBegun = true;
              // Lists may have changed while the host was not connected (02 §12.9).
              if (!isFirst) await this.#emitListChanges(relayId);
              isFirst = false;
            },
            caughtUp: async (hints) => {
              const host = this.#hosts.get(relayId);
              if (host !== undefined) host.hints = hints;
              await this.#syncFollowedHosts(relayId);
              if (await hasTasks(core)) this.#homeHints?.wake();
            },
            responded: () => {
              failures = 0;
            },
          },
          signal,
        );
      } catch (error) {
        if (signal.aborted) return;
        if (!isClientError(error)) throw error;
        if (!hasBegun) await this.#emitHostFailure(relayId, error);
        failures += 1;
        await this.#pause(this.#waitBefore(failures, error), { error, wakes, signal });
      }
    }
  }

  #relay(
    relayId: string,
    signal: AbortSignal,
  ): Pick<FollowedRelay, 'core' | 'connection' | 'pollInterval' | 'catchUp' | 'emit'> {
    const { core } = this.#followed;
    return {
      core,
      connection: core.relay(relayId),
      pollInterval: this.#options.pollInterval,
      catchUp: (scope) => this.#followed.catchUp(signal, scope),
      emit: (event) => this.#queue.put(event),
    };
  }

  #waitBefore(failures: number, error: unknown): number {
    const { random } = this.#followed.core;
    return backoff(failures, retry, { random, hintSeconds: retryHintOf(error) });
  }

  /** Waits for the next try, or for a wake after `wakes`. */
  async #pause(
    wait: number,
    options: { readonly error: unknown; readonly wakes: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { error, wakes: since, signal } = options;
    const pause = this.#followed.core.waker.sleep(wait, {
      since,
      signal,
      hint: retryHintOf(error),
    });
    await pause.catch(() => undefined);
  }

  async #emitListChanges(relayId: string): Promise<void> {
    const { core } = this.#followed;
    const rows = await core.store.read((tx) => groupRows(tx));
    for (const row of rows) {
      if (row.relay_id !== relayId || row.standing !== 'member' || !shouldReadGroup(row)) continue;
      const { group_id } = row;
      await this.#queue.put({ kind: 'group-applications', groupId: group_id });
      await this.#queue.put({ kind: 'group-recoveries', groupId: group_id });
    }
  }

  async #emitHostFailure(relayId: string, error: unknown): Promise<void> {
    const { store } = this.#followed.core;
    const { groups, channels } = await store.read(async (tx) => ({
      groups: await groupRows(tx),
      channels: await channelRows(tx),
    }));
    for (const row of groups) {
      if (row.relay_id !== relayId || !shouldReadGroup(row)) continue;
      await this.#queue.put({ kind: 'group-failed', groupId: row.group_id, error });
    }
    for (const row of channels) {
      if (row.relay_id !== relayId || !shouldReadChannel(row)) continue;
      await this.#queue.put({ kind: 'channel-failed', channelId: row.channel_id, error });
    }
  }
}

/** Whether other relays are asked after this many failures in a row: early once, then seldom. */
function isTurnToAsk(failures: number): boolean {
  return failures % 16 === 3;
}

function throwUnlessNoRelay(error: unknown): void {
  if (!isClientError(error, 'no_relay')) throw error;
}

/** Whether following goes on after an error. A misbehaving relay may be repaired later. */
export function mayRecover(error: unknown): boolean {
  return isTemporary(error) || isClientError(error, 'relay_misbehaviour');
}
