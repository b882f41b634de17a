/** Following an account: the home relay, and every host of its groups and channels (02 §12). */
import { isWrongHome } from '../accounts/home-relay.ts';
import { channelRows, shouldReadChannel } from '../channels/channel-rows.ts';
import { backoff, isTemporary, retryHintOf } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { isClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import { groupRows } from '../groups/group-rows.ts';
import { shouldReadGroup } from '../groups/timeline/read-group.ts';
import { AsyncQueue } from '../sync/async-queue.ts';
import type { SyncScope } from '../sync/catch-up-hosts.ts';
import { type FollowedRelay, followRelay, hasTasks } from './follow-relay.ts';
import type { Hints } from './hints.ts';

export interface FollowOptions {
  readonly signal: AbortSignal;
  /** Milliseconds between reads where a relay sends no notifications. */
  readonly pollInterval?: number;
}

/** What following needs of the account. */
export interface Followed {
  readonly core: AccountCore;
  /** Everything that catching up is, in one go; of a smaller scope, where one is given. */
  catchUp(signal: AbortSignal, scope: SyncScope): AsyncGenerator<readonly AccountEvent[]>;
  /** Looks for the home relay again. */
  refreshHome(signal: AbortSignal): Promise<void>;
}

const retry = { attempts: Number.POSITIVE_INFINITY, base: 500, cap: 60_000 };

/**
 * Gives what happens until the signal aborts. Lost connections are rebuilt with backoff, and every
 * new one begins by catching up: nothing depends on a notification having arrived. Each relay is
 * followed on its own, so that none can hold up what another one tells.
 *
 * @throws ClientError of the home relay that time does not heal, such as the device having been
 *   removed
 */
export async function* follow(
  followed: Followed,
  options: FollowOptions,
): AsyncGenerator<AccountEvent> {
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const queue = new AsyncQueue<AccountEvent>();
  const following = new AccountFollower(followed, { ...options, signal }, queue);
  try {
    following.start();
    yield* queue.items();
  } finally {
    stop.abort();
    queue.discard();
    await following.stopped();
  }
}

class AccountFollower {
  readonly #followed: Followed;
  readonly #options: Required<FollowOptions>;
  readonly #queue: AsyncQueue<AccountEvent>;
  /** Foreign hosts that are followed: what ends that, and where the reader waits. */
  readonly #hosts = new Map<string, { readonly stop: AbortController; hints?: Hints }>();
  readonly #running = new Set<Promise<void>>();
  #homeId: string | undefined;
  /** Where the home relay's reader waits. */
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

  /** What fails here is told to whoever follows. */
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
      try {
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
              await this.#queue.put({ kind: 'connected', transport });
            },
            caughtUp: async (hints) => {
              this.#homeHints = hints;
              const hasNewEvents = core.eventBuffer.isSignaled;
              for (const event of core.eventBuffer.take()) await this.#queue.put(event);
              await this.#syncFollowedHosts();
              // What was found on the way may be a group that is to be subscribed.
              if (hasNewEvents) for (const host of this.#hosts.values()) host.hints?.wake();
            },
            // Only now: a relay that ends every connection at once is no relay that works.
            responded: () => {
              failures = 0;
            },
          },
          signal,
        );
      } catch (error) {
        if (signal.aborted) return;
        if (isWrongHome(error)) await refreshHome(signal);
        else if (!mayRecover(error)) throw error;
        if (transport !== undefined) await this.#queue.put({ kind: 'disconnected', error });
        transport = undefined;
        failures += 1;
        await this.#pause(failures, { error, signal });
      }
    }
  }

  /** Follows every host of groups and channels, and no other relay. */
  async #syncFollowedHosts(): Promise<void> {
    const { core } = this.#followed;
    const wanted = await hostsOf(core);
    if (this.#homeId !== undefined) wanted.delete(this.#homeId);
    for (const [relayId, { stop }] of this.#hosts) {
      if (wanted.has(relayId)) continue;
      this.#hosts.delete(relayId);
      stop.abort();
    }
    for (const relayId of wanted) {
      if (this.#hosts.has(relayId) || this.#options.signal.aborted) continue;
      const stop = new AbortController();
      this.#hosts.set(relayId, { stop });
      this.#run(this.#followHost(relayId, AbortSignal.any([this.#options.signal, stop.signal])));
    }
  }

  /** Whatever becomes of a host concerns what it hosts, and nothing else. */
  async #followHost(relayId: string, signal: AbortSignal): Promise<void> {
    const { core } = this.#followed;
    let isFirst = true;
    for (let failures = 0; !signal.aborted; ) {
      let hasBegun = false;
      try {
        await followRelay(
          {
            ...this.#relay(relayId, signal),
            isHome: false,
            started: async () => {
              hasBegun = true;
              // Lists may have changed while nothing was heard (02 §12.9).
              if (!isFirst) await this.#emitListChanges(relayId);
              isFirst = false;
            },
            caughtUp: async (hints) => {
              const host = this.#hosts.get(relayId);
              if (host !== undefined) host.hints = hints;
              await this.#syncFollowedHosts();
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
        await this.#pause(failures, { error, signal });
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

  async #pause(
    failures: number,
    { error, signal }: { readonly error: unknown; readonly signal: AbortSignal },
  ): Promise<void> {
    const { core } = this.#followed;
    const wait = backoff(failures, retry, { random: core.random, hintSeconds: retryHintOf(error) });
    await core.clock.sleep(wait, signal).catch(() => undefined);
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

/** A misbehaving relay may be a relay under repair; nothing it answered was used. */
export function mayRecover(error: unknown): boolean {
  return isTemporary(error) || isClientError(error, 'relay_misbehaviour');
}

/** Every relay that hosts something to be read. */
async function hostsOf({ store }: AccountCore): Promise<Set<string>> {
  return await store.read(async (tx) => {
    const groups = (await groupRows(tx)).filter(shouldReadGroup);
    const channels = (await channelRows(tx)).filter(shouldReadChannel);
    return new Set([...groups, ...channels].map((row) => row.relay_id));
  });
}
