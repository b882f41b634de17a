/** Following one relay: subscribing, reading, and waiting for a reason to read again (02 §12). */
import { noteStateHint } from '../accounts/device-states.ts';
import { channelRows, storeChannelHint } from '../channels/channel-rows.ts';
import type { AuthenticatedConnection } from '../connect/authenticated-connection.ts';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';
import { groupRow, groupRows } from '../groups/group-rows.ts';
import { timelinePosition } from '../messages/read-timeline.ts';
import type { SyncScope } from '../sync/catch-up-hosts.ts';
import { pendingTasks } from '../sync/tasks.ts';
import { applicationInterval } from './application-polls.ts';
import { Hints } from './hints.ts';
import { subscribeAtHost } from './subscribe.ts';
import { idsToSubscribe, type SubscribedIds } from './subscribed-ids.ts';

/** One followed relay, and the callbacks of its follower. */
export interface FollowedRelay {
  readonly core: AccountCore;
  readonly connection: RelayConnection;
  readonly isHome: boolean;
  /** Milliseconds between full reads if the relay sends no notifications. */
  readonly pollInterval: number;
  /** Reads the scope and yields its events, which are recorded. */
  catchUp(scope: SyncScope): AsyncGenerator<readonly AccountEvent[]>;
  /** Records an event that belongs to no other change of the state. */
  emit(event: AccountEvent): Promise<void>;
  /** Called when the relay is connected and subscribed; everything is read next. */
  started(kind: AuthenticatedConnection['wire']['kind']): Promise<void>;
  /** Called after everything requested was read. */
  caughtUp(hints: Hints): Promise<void>;
  /** Called when the relay sent a notification or an interval passed without an error. */
  responded(): void;
}

/**
 * Milliseconds after which everything is read even without a notification: the WebSocket may be
 * dead, its session revoked, a notification lost, or a read have failed.
 */
const fullReadInterval = 60_000;

/**
 * Follows one relay until everything must be read again.
 * @throws ClientError if the relay cannot be reached, or when its connection ends
 */
export async function followRelay(relay: FollowedRelay, signal: AbortSignal): Promise<void> {
  const { core, connection, isHome, pollInterval } = relay;
  const { relayId } = connection;
  const hints = new Hints(isHome);
  connection.onNotification = (notification) => hints.add(notification);
  const established = await connection.authenticated(signal);
  void established.ended?.then((reason) => hints.end(reason));
  let lastFullReadAt = core.clock.milliseconds();
  let allSubscribed = true;
  let subscribed: string | undefined;
  let scope: SyncScope = { home: isHome, host: relayId };
  for (;;) {
    const wakes = core.waker.count;
    // Subscribe before reading, so that no change is missed in between (05 §17.1).
    const hosted = await idsToSubscribe(core, relayId);
    const key = JSON.stringify(hosted);
    if (key !== subscribed) {
      allSubscribed = await subscribe(relay, { hosted, hints, signal });
      // No hint named what happened in new ones before.
      scope = { home: scope.home ?? false, host: relayId };
    }
    if (subscribed === undefined) await relay.started(established.wire.kind);
    subscribed = key;
    // Every event is in the log when it is yielded.
    for await (const _recorded of relay.catchUp(scope));
    await relay.caughtUp(hints);
    signal.throwIfAborted();
    const readAt = core.clock.milliseconds();
    // The clock may have been put back since everything was read.
    lastFullReadAt = Math.min(lastFullReadAt, readAt);
    // Only a complete read shows which groups there are.
    scope = { home: false, host: relayId };
    if (JSON.stringify(await idsToSubscribe(core, relayId)) !== key) continue;
    // What sends no hints is read at intervals, even if others send many.
    const isCovered =
      established.ended !== undefined && allSubscribed && !(await hasMoreToRead(core, relayId));
    const interval = isCovered ? fullReadInterval : pollInterval;
    const applications = await applicationInterval(core, relayId);
    const request = await waitForChange(relay, {
      hints,
      readAllAt: lastFullReadAt + interval,
      pollAt: readAt + (applications ?? Number.POSITIVE_INFINITY),
      // What sends no hints is read when the client is woken.
      ...((!isCovered || applications !== undefined) && { wakes }),
      signal,
    });
    if (request === undefined) break;
    scope = { ...scope, ...request };
  }
  if (established.ended === undefined) await connection.retryWebSocket(signal);
}

/** Whether a group or channel of a host was interrupted by a read limit. */
async function hasMoreToRead({ store }: AccountCore, relayId: string): Promise<boolean> {
  return await store.read(async (tx) => {
    const rows = [...(await groupRows(tx)), ...(await channelRows(tx))];
    return rows.some(({ relay_id, leftAt }) => relay_id === relayId && leftAt !== undefined);
  });
}

/** @returns whether all groups and channels are subscribed */
async function subscribe(
  { connection, isHome }: FollowedRelay,
  to: { readonly hosted: SubscribedIds; readonly hints: Hints; readonly signal: AbortSignal },
): Promise<boolean> {
  const { hosted, hints, signal } = to;
  const [groups, channels] = [new Set(hosted.groups), new Set(hosted.channels)];
  hints.subscribed = { isHome, groups, channels };
  let allSubscribed = true;
  for (const kind of ['groups', 'channels'] as const) {
    if (hosted[kind].length === 0) continue;
    const ids = hosted[kind];
    if (!(await subscribeAtHost(connection, kind, { ids, signal }))) allSubscribed = false;
  }
  return allSubscribed;
}

/** What must be read again. */
type ReadRequest = Required<Pick<SyncScope, 'home' | 'groups' | 'channels'>>;

/**
 * Waits until there is a reason to read again.
 *
 * @returns what to read; `undefined` if everything must be read
 * @throws ClientError with which the connection ended
 */
async function waitForChange(
  relay: FollowedRelay,
  until: {
    readonly hints: Hints;
    readonly readAllAt: number;
    /** Unix milliseconds at which groups that this account applied to are read. */
    readonly pollAt: number;
    /** A {@link Waker.count}: a later wake ends the waiting. */
    readonly wakes?: number;
    readonly signal: AbortSignal;
  },
): Promise<ReadRequest | undefined> {
  const { core, isHome } = relay;
  const { hints, pollAt, wakes, signal } = until;
  let { readAllAt } = until;
  for (;;) {
    const since = core.clock.milliseconds();
    // The clock may have been put back: a notification must not begin the wait again.
    readAllAt = Math.min(readAllAt, since + Math.max(fullReadInterval, relay.pollInterval));
    const stop = new AbortController();
    const bounded = AbortSignal.any([signal, stop.signal]);
    const wait = Math.max(0, Math.min(readAllAt, pollAt) - since);
    const pause =
      wakes === undefined
        ? core.clock.sleep(wait, bounded)
        : core.waker.sleep(wait, { since: wakes, signal: bounded });
    const isOver = await Promise.race([
      hints.changed().then(() => false),
      ...(isHome ? [core.wakeSignal.woken().then(() => false)] : []),
      pause.then(() => true),
    ]).finally(() => {
      stop.abort();
      pause.catch(() => undefined);
    });
    relay.responded();
    const now = core.clock.milliseconds();
    const isPoll = isOver && pollAt <= now && now < readAllAt;
    const news = await takeReadRequest(relay, hints, isPoll);
    if (isOver && !isPoll) return undefined;
    if (news !== undefined) return news;
  }
}

/**
 * Returns the unread items named by hints. Hints are not trusted and move no position.
 * @param isPoll whether there is a reason to read even without them
 */
async function takeReadRequest(
  relay: FollowedRelay,
  hints: Hints,
  isPoll: boolean,
): Promise<ReadRequest | undefined> {
  const { core, connection, isHome } = relay;
  const drained = hints.drain();
  const found = await core.store.write(async (tx) => {
    const unread = drained.head > (await timelinePosition(tx, connection.relayId));
    const outdated = await noteStateHint(tx, core.account, drained.revision);
    const groups = new Set(drained['group-recoveries']);
    for (const [groupId, head] of drained.groups) {
      const row = await groupRow(tx, groupId);
      if (row !== undefined && head > row.position) groups.add(groupId);
    }
    const channels = new Set<string>();
    for (const [channelId, head] of drained.channels) {
      if (await storeChannelHint(tx, channelId, head)) channels.add(channelId);
    }
    return { home: isHome && (unread || outdated), groups, channels };
  });
  for (const kind of ['group-applications', 'group-recoveries'] as const) {
    for (const groupId of drained[kind]) await relay.emit({ kind, groupId });
  }
  const isWoken = drained.isWoken || (isHome && core.wakeSignal.isWoken);
  const isUnread = found.home || found.groups.size + found.channels.size > 0;
  return isPoll || isWoken || isUnread ? found : undefined;
}

/** Whether tasks wait to be sent over the home relay. */
export async function hasTasks({ store }: AccountCore): Promise<boolean> {
  return (await store.read((tx) => pendingTasks.list(tx, { limit: 1 }))).length > 0;
}
