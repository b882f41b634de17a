/** Following an account: catching up, then hints, then catching up again (02 §12). */

import { isWrongHome } from './accounts/home.ts';
import { noteStateHint } from './accounts/states.ts';
import { noteChannelHint } from './channels/rows.ts';
import { channelsByHost } from './channels/subscriptions.ts';
import { backoff, hintOf, isTemporary } from './connect/backoff.ts';
import type { AccountCore } from './core.ts';
import { ClientError, isClientError } from './errors.ts';
import type { AccountEvent } from './events.ts';
import { groupRow } from './groups/rows.ts';
import { groupsByHost } from './groups/subscriptions.ts';
import { type Drained, Hints } from './hints.ts';
import { subscribeHosted } from './hosted.ts';
import { timelinePosition } from './messages/timeline.ts';

export interface FollowOptions {
  readonly signal: AbortSignal;
  /** Milliseconds between reads where the relay sends no notifications. */
  readonly pollInterval?: number;
}

/** What is to be read. */
export interface Scope {
  /** Whether the account's own timeline is. */
  readonly home: boolean;
  /** These groups; all of them by default. */
  readonly groups?: ReadonlySet<string>;
  /** These channels; all that are followed by default. */
  readonly channels?: ReadonlySet<string>;
}

/** What following needs of the account. */
export interface Followed {
  readonly core: AccountCore;
  /** Everything that catching up is, in one go; of a smaller scope, where one is given. */
  catchUp(signal: AbortSignal, scope?: Scope): AsyncGenerator<readonly AccountEvent[]>;
  /** Looks for the home relay again. */
  refreshHome(signal: AbortSignal): Promise<void>;
}

const retry = { attempts: Number.POSITIVE_INFINITY, base: 500, cap: 60_000 };

/**
 * Milliseconds of silence after which a WebSocket is read from all the same: it may be dead without
 * knowing, its session revoked without a word, a notification lost.
 */
const silenceLimit = 60_000;

/**
 * Gives what happens until the signal aborts. Lost connections are rebuilt with backoff, and every
 * new one begins by catching up: nothing depends on a notification having arrived.
 *
 * @throws ClientError that time does not heal, such as the device having been removed
 */
export async function* follow(
  followed: Followed,
  { signal, pollInterval = 30_000 }: FollowOptions,
): AsyncGenerator<AccountEvent> {
  const { core } = followed;
  let transport: 'websocket' | 'http' | undefined;
  for (let failures = 0; !signal.aborted; ) {
    try {
      const home = await core.home();
      const hints = new Hints();
      home.onNotification = (notification) => hints.take(notification);
      const link = await home.link(signal);
      const wholeAt = core.clock.milliseconds();
      for (let scope: Scope | undefined; ; ) {
        // Subscribed first, so that nothing falls between reading and being told (05 §17.1).
        const subscribed = await subscribeAll(core, hints, signal);
        if (transport !== link.channel.kind) {
          transport = link.channel.kind;
          yield { kind: 'connected', transport };
        }
        for await (const events of followed.catchUp(signal, scope)) yield* events;
        yield* core.happenings.take();
        // Read to the end, and only that shows which groups there are.
        scope = { home: false };
        if (keyOfHosts(await hostsOf(core)) !== subscribed.key) continue;
        const ended = [...subscribed.ended, ...(link.ended === undefined ? [] : [link.ended])];
        // What no hint will tell of is read at intervals, however much is heard of the rest.
        const patience = ended.length > 0 && subscribed.isWhole ? silenceLimit : pollInterval;
        const since = subscribed.isWhole ? core.clock.milliseconds() : wholeAt;
        const deadline = since + patience;
        const news = await quiet(core, home.relayId, { hints, ended, signal, deadline });
        // Only now: a relay that ends every connection at once is no relay that works.
        failures = 0;
        yield* core.happenings.take();
        for (const kind of ['group-applications', 'group-recoveries'] as const) {
          for (const group_id of news[kind]) yield { kind, group_id };
        }
        if (news.silence) break;
        scope = { home: news.home, groups: news.groups, channels: news.channels };
      }
      if (link.ended === undefined) home.reconsider();
    } catch (error) {
      if (signal.aborted) return;
      if (isWrongHome(error)) await followed.refreshHome(signal);
      else if (!isPassing(error)) throw error;
      if (transport !== undefined) yield { kind: 'disconnected', error };
      transport = undefined;
      failures += 1;
      const hintSeconds = hintOf(error);
      const wait = backoff(failures, retry, { random: core.random, hintSeconds });
      await core.clock.sleep(wait, signal).catch(() => undefined);
    }
  }
}

/** What is subscribed at one host. */
interface Hosted {
  readonly groups: readonly string[];
  readonly channels: readonly string[];
}

async function hostsOf(core: AccountCore): Promise<Map<string, Hosted>> {
  const [groups, channels] = [await groupsByHost(core), await channelsByHost(core)];
  const relayIds = [...new Set([...groups.keys(), ...channels.keys()])].sort();
  return new Map(
    relayIds.map((relayId) => [
      relayId,
      { groups: groups.get(relayId) ?? [], channels: channels.get(relayId) ?? [] },
    ]),
  );
}

/** A text that differs wherever groups or channels do. */
function keyOfHosts(hosts: ReadonlyMap<string, Hosted>): string {
  return JSON.stringify([...hosts]);
}

interface Subscribed {
  /** Which groups and channels there were. */
  readonly key: string;
  /** Ends of the links to other relays than the home. */
  readonly ended: readonly Promise<ClientError>[];
  /** Whether hints will tell of all of them. */
  readonly isWhole: boolean;
}

/**
 * Subscribes every group and channel at its host. A host that cannot be reached is read without
 * hints.
 */
async function subscribeAll(
  core: AccountCore,
  hints: Hints,
  signal: AbortSignal,
): Promise<Subscribed> {
  const hosts = await hostsOf(core);
  const { relayId: homeId } = await core.home();
  const ended: Promise<ClientError>[] = [];
  let isWhole = true;
  for (const [relayId, hosted] of hosts) {
    const connection = core.relay(relayId);
    connection.onNotification = (notification) => hints.take(notification);
    try {
      for (const kind of ['groups', 'channels'] as const) {
        if (hosted[kind].length === 0) continue;
        const subscribed = await subscribeHosted(connection, kind, { ids: hosted[kind], signal });
        const { link } = subscribed;
        isWhole &&= subscribed.isWhole;
        if (link.ended !== undefined && relayId !== homeId) ended.push(link.ended);
      }
    } catch (error) {
      if (relayId === homeId || !isPassing(error)) throw error;
      isWhole = false;
    }
  }
  return { key: keyOfHosts(hosts), ended, isWhole };
}

/** A misbehaving relay may be a relay under repair; nothing it answered was used. */
function isPassing(error: unknown): boolean {
  return isTemporary(error) || isClientError(error, 'relay_misbehaviour');
}

/** Why something is read again. */
interface News {
  /** Nothing was heard for so long that everything is read. */
  readonly silence: boolean;
  readonly home: boolean;
  readonly groups: ReadonlySet<string>;
  readonly channels: ReadonlySet<string>;
  readonly 'group-applications': ReadonlySet<string>;
  readonly 'group-recoveries': ReadonlySet<string>;
}

/**
 * Waits until there is a reason to read again.
 * @throws ClientError with which a connection ended
 */
async function quiet(
  core: AccountCore,
  relayId: string,
  until: {
    readonly hints: Hints;
    readonly ended: readonly Promise<ClientError>[];
    readonly signal: AbortSignal;
    /** Unix milliseconds at which everything is read. */
    readonly deadline: number;
  },
): Promise<News> {
  const { hints, ended, signal } = until;
  for (;;) {
    const stop = new AbortController();
    const bounded = AbortSignal.any([signal, stop.signal]);
    const pause = core.clock.sleep(until.deadline - core.clock.milliseconds(), bounded);
    const reason = await Promise.race([
      hints.next().then(() => 'hint' as const),
      core.happenings.next().then(() => 'hint' as const),
      pause.then(() => 'silence' as const),
      ...ended,
    ]).finally(() => {
      stop.abort();
      pause.catch(() => undefined);
    });
    if (reason instanceof ClientError) throw reason;
    const news = await newsOf(core, relayId, { ...hints.drain(), silence: reason === 'silence' });
    if (news !== undefined) return news;
  }
}

/** What hints tell of that was not read yet. They prove and move nothing themselves. */
async function newsOf(
  core: AccountCore,
  relayId: string,
  hints: Drained & { readonly silence: boolean },
): Promise<News | undefined> {
  const found = await core.store.write(async (tx) => {
    const unread = hints.head > (await timelinePosition(tx, relayId));
    const outdated = await noteStateHint(tx, core.account, hints.revision);
    const groups = new Set(hints['group-recoveries']);
    for (const [groupId, head] of hints.groups) {
      const row = await groupRow(tx, groupId);
      if (row !== undefined && head > row.position) groups.add(groupId);
    }
    const channels = new Set<string>();
    for (const [channelId, head] of hints.channels) {
      if (await noteChannelHint(tx, channelId, head)) channels.add(channelId);
    }
    return { home: unread || outdated, groups, channels };
  });
  const hasFound = core.happenings.isWaiting || hints['group-applications'].size > 0;
  const isOpen = found.groups.size + found.channels.size > 0;
  const isNews = hints.silence || hasFound || found.home || isOpen;
  return isNews ? { ...hints, ...found } : undefined;
}
