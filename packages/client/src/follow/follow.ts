/** Follows an account: its home relay, and every host of its groups and channels (02 §12). */
import '../dispose-symbols.ts';
import { hasMovedFromAway, isAway, isWrongHome } from '../accounts/home-relay.ts';
import { channelRows, shouldReadChannel } from '../channels/channel-rows.ts';
import { backoff, mayRecover, retryHintOf } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { isClientError, type PlainError } from '../errors.ts';
import { recordPassing } from '../events/event-log.ts';
import type { AccountEvent } from '../events.ts';
import { groupRows } from '../groups/group-rows.ts';
import { shouldReadGroup } from '../groups/timeline/read-group.ts';
import type { SyncScope } from '../sync/catch-up-hosts.ts';
import { type FollowedRelay, followRelay, hasTasks } from './follow-relay.ts';
import type { Hints } from './hints.ts';
import { idsToRead } from './subscribed-ids.ts';

/** What following needs from the account. */
export interface Followed {
  readonly core: AccountCore;
  /** Catches up everything in the scope, and yields events. */
  catchUp(signal: AbortSignal, scope: SyncScope): AsyncGenerator<readonly AccountEvent[]>;
  /** Resolves the account's home relay again. */
  refreshHome(signal: AbortSignal): Promise<void>;
}

const retry = { attempts: Number.POSITIVE_INFINITY, base: 500, cap: 60_000 };

/** The latest time of a `Date`, Unix milliseconds: a relay may hint at a later one (02 §5). */
const latestTime = 8_640_000_000_000_000;

/** How an account is followed. */
interface FollowerOptions {
  /** Milliseconds between reads if a relay sends no notifications. */
  readonly pollInterval: number;
}

/**
 * Follows an account until the signal aborts, and records its events. Lost connections are
 * reconnected with backoff, and every new connection begins by catching up, so that no event depends
 * on a notification. Each relay is followed separately: a slow relay does not delay the others.
 *
 * @throws ClientError of the home relay that a retry cannot solve, such as a removed device
 */
export async function followAccount(
  followed: Followed,
  options: FollowerOptions,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const following = new AccountFollower(followed, options, either);
  try {
    following.start();
    await following.ended;
  } finally {
    stop.abort();
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
  readonly #options: FollowerOptions;
  readonly #signal: AbortSignal;
  readonly #end = Promise.withResolvers<void>();
  /** Followed hosts other than the home relay: their abort controllers and hints. */
  readonly #hosts = new Map<string, FollowedHost>();
  readonly #running = new Set<Promise<void>>();
  #homeId: string | undefined;
  /** The hints of the home relay's reader. */
  #homeHints: Hints | undefined;

  constructor(followed: Followed, options: FollowerOptions, signal: AbortSignal) {
    this.#followed = followed;
    this.#options = options;
    this.#signal = signal;
  }

  start(): void {
    this.#run(this.#followHome().then(() => this.#end.resolve()));
  }

  /** Settles when the home relay is followed no more, or with the first error. */
  get ended(): Promise<void> {
    return this.#end.promise;
  }

  async stopped(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Runs a follower in the background; its error ends all. */
  #run(work: Promise<void>): void {
    const safe = work
      .catch((error: unknown) => this.#end.reject(error))
      .finally(() => this.#running.delete(safe));
    this.#running.add(safe);
  }

  async #followHome(): Promise<void> {
    const { core, refreshHome } = this.#followed;
    const signal = this.#signal;
    let transport: 'websocket' | 'http' | undefined;
    for (let failures = 0; !signal.aborted; ) {
      const wakes = core.waker.count;
      try {
        if (transport === undefined)
          await this.#record({ kind: 'connection', state: 'connecting' });
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
              await this.#record({ kind: 'connection', state: 'connected', transport });
            },
            caughtUp: async (hints) => {
              this.#homeHints = hints;
              const isWoken = core.wakeSignal.take();
              await this.#syncFollowedHosts();
              // There may be a group or channel that must be subscribed now.
              if (isWoken) for (const host of this.#hosts.values()) host.hints?.wake();
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
        if (!isClientError(error)) throw error;
        // Without an answer it is asked again later; a relay that is away is waited for.
        if (isWrongHome(error)) await refreshHome(signal).catch(throwUnlessNoRelay);
        else if (isAway(error) && isTurnToAsk(failures)) await this.#askOthers(signal);
        else if (!mayRecover(error)) throw error;
        transport = undefined;
        failures += 1;
        const wait = this.#waitBefore(failures, error);
        const nextTryAt = Math.min(core.clock.milliseconds() + wait, latestTime);
        await this.#record({ kind: 'connection', state: 'disconnected', error, nextTryAt });
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
      } else if (!this.#signal.aborted) {
        const stop = new AbortController();
        this.#hosts.set(relayId, { stop, ids });
        this.#run(this.#followHost(relayId, AbortSignal.any([this.#signal, stop.signal])));
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

  async #record(event: AccountEvent): Promise<void> {
    await recordPassing(this.#followed.core, [event]);
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
      emit: (event) => this.#record(event),
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
    const events: AccountEvent[] = [];
    for (const row of rows) {
      if (row.relay_id !== relayId || row.standing !== 'member' || !shouldReadGroup(row)) continue;
      const { group_id: groupId } = row;
      events.push({ kind: 'group-applications', groupId }, { kind: 'group-recoveries', groupId });
    }
    await recordPassing(core, events);
  }

  async #emitHostFailure(relayId: string, error: PlainError): Promise<void> {
    const { core } = this.#followed;
    const { groups, channels } = await core.store.read(async (tx) => ({
      groups: await groupRows(tx),
      channels: await channelRows(tx),
    }));
    const events: AccountEvent[] = [];
    for (const row of groups) {
      if (row.relay_id !== relayId || !shouldReadGroup(row)) continue;
      events.push({ kind: 'group-failed', groupId: row.group_id, error });
    }
    for (const row of channels) {
      if (row.relay_id !== relayId || !shouldReadChannel(row)) continue;
      events.push({ kind: 'channel-failed', channelId: row.channel_id, error });
    }
    await recordPassing(core, events);
  }
}

/** Whether other relays are asked after this many failures in a row: early once, then seldom. */
function isTurnToAsk(failures: number): boolean {
  return failures % 16 === 3;
}

function throwUnlessNoRelay(error: unknown): void {
  if (!isClientError(error, 'no_relay')) throw error;
}
