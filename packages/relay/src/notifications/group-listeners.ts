import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { nextTurn } from '../event-loop.ts';
import { type GroupReaders, readGroupReaders } from '../groups/index.ts';
import { readEnds } from '../sessions/session-store.ts';
import { FairScheduler, pauseAfter } from './fair-scheduler.ts';
import { type GroupList, groupListHint, groupTimelineHint, type Hint } from './hint.ts';
import type { Listener } from './listener.ts';
import { applySessionEnd, RecheckQueue, recheckBatchSize } from './recheck-queue.ts';
import { noAccess, SubscriberMap, type Subscribers, type TopicListeners } from './subscribers.ts';

type GroupNotice = Extract<Notice, { group: string }>;
type Context = Pick<RelayContext, 'clock' | 'log' | 'metrics' | 'sessions' | 'storage'>;

/** Changes of a group that its listeners have not been notified of. */
interface PendingHints {
  /** Head of the timeline; -1 for nothing new. */
  head: number;
  /** By list, the accounts to notify of its change. */
  readonly lists: Map<GroupList, Set<string>>;
}

interface Group extends Subscribers {
  /** Sequence of the last event that ended access: earlier confirmations are outdated. */
  accessEnded: number;
  /** Changes for confirmed listeners, and for those whose access must be checked first. */
  pending: PendingHints | undefined;
  unconfirmed: PendingHints | undefined;
  /** Whether all listeners must be checked, whatever their confirmation. */
  recheckAll: boolean;
  isNotifying: boolean;
}

/**
 * Notifies the connections that subscribe to groups (05 §15). A listener's access was confirmed when
 * it subscribed; it is checked again in storage only if a commit ended access since, or this process
 * may not know which sessions ended. A listener without access stays subscribed, and is checked again at
 * each change (05 §13.29). Other listeners do not wait for that check, and nothing queues: changes
 * of a group that arrive meanwhile are merged.
 */
export class GroupListeners implements TopicListeners, AsyncDisposable {
  readonly #context: Context;
  readonly #groups: SubscriberMap<Group>;
  readonly #rechecks: RecheckQueue<Group>;
  readonly #scheduler: FairScheduler;

  constructor(context: Context, scheduler = new FairScheduler(context.clock)) {
    this.#context = context;
    this.#scheduler = scheduler;
    this.#rechecks = new RecheckQueue(context, (group) => this.#recheck(group));
    this.#groups = new SubscriberMap(newGroup, (group) => this.#rechecks.delete(group));
  }

  /** @see TopicListeners */
  get count(): number {
    return this.#groups.count;
  }

  /** @see TopicListeners */
  countOf(account: string): number {
    return this.#groups.countOf(account);
  }

  /** @see TopicListeners */
  ids(): string[] {
    return this.#groups.ids();
  }

  /** @see TopicListeners */
  expect(ids: readonly string[]): Disposable {
    return this.#groups.expect(ids);
  }

  /** @see TopicListeners */
  join(listener: Listener, id: string, confirmedAt: number): void {
    const group = this.#groups.join(listener, id, confirmedAt);
    if (group === undefined) return;
    const changes = { head: group.head, lists: new Map() };
    if (this.#context.sessions.isCurrent && confirmedAt >= group.accessEnded) {
      passTimeline(listener, hintsOf(id, changes));
      return;
    }
    if (!this.#context.sessions.isCurrent) group.recheckAll = true;
    this.#recheckLater(group, changes);
    this.#rechecks.start();
  }

  /** @see TopicListeners */
  uncount(listener: Listener, subscriptions: number): void {
    this.#groups.uncount(listener, subscriptions);
  }

  /** @see TopicListeners */
  leave(listener: Listener, id: string): void {
    this.#groups.leave(listener, id);
  }

  /** Sends the hints of a notice to the group's listeners in this process. */
  notify(notice: GroupNotice): void {
    const group = this.#groups.get(notice.group);
    if (group === undefined) return;
    if (notice.kind === 'group-timeline') {
      const { head, accessEnded } = notice;
      if (head <= group.head && accessEnded <= group.accessEnded) return;
      group.head = Math.max(group.head, head);
      group.accessEnded = Math.max(group.accessEnded, accessEnded);
      group.pending = merge(group.pending, { head, lists: new Map() });
    } else {
      const list = notice.kind === 'group-applications' ? 'applications' : 'recoveries';
      const lists = new Map([[list, new Set(notice.accounts)] as const]);
      group.pending = merge(group.pending, { head: -1, lists });
    }
    if (!group.isNotifying) void this.#notifyAll(group);
  }

  /** Lets the current recheck finish and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rechecks[Symbol.asyncDispose]();
  }

  async #notifyAll(group: Group): Promise<void> {
    group.isNotifying = true;
    for (let changes = group.pending; changes !== undefined; changes = group.pending) {
      const current = changes;
      const began = this.#context.clock.monotonic();
      group.pending = undefined;
      const hints = hintsOf(group.id, current);
      let mustRecheck = false;
      await this.#scheduler.each(group.listeners, ([listener, confirmedAt]) => {
        // It may have left while it waited.
        if (!group.listeners.has(listener)) return;
        // The accounts of a list had access in the commit itself. While it may not be known which
        // sessions ended, every listener must be checked in storage.
        if (!this.#context.sessions.isCurrent) {
          group.recheckAll = true;
          return;
        }
        passLists(listener, current, hints);
        if (confirmedAt >= group.accessEnded) passTimeline(listener, hints);
        else mustRecheck = true;
      });
      if (group.recheckAll) this.#recheckLater(group, current);
      else if (mustRecheck) this.#recheckLater(group, { head: current.head, lists: new Map() });
      this.#rechecks.start();
      // Each hint makes members read: leave half of the time to other calls.
      await pauseAfter(this.#context.clock, began);
    }
    group.isNotifying = false;
  }

  #recheckLater(group: Group, changes: PendingHints): void {
    group.unconfirmed = merge(group.unconfirmed, changes);
    this.#rechecks.add(group);
  }

  async #recheck(group: Group): Promise<void> {
    const changes = group.unconfirmed ?? { head: -1, lists: new Map() };
    const all = group.recheckAll;
    group.unconfirmed = undefined;
    group.recheckAll = false;
    try {
      await this.#recheckBatches(group, { changes, all });
    } catch (error) {
      group.unconfirmed = merge(group.unconfirmed, changes);
      group.recheckAll ||= all;
      throw error;
    }
  }

  async #recheckBatches(
    group: Group,
    { changes, all }: { readonly changes: PendingHints; readonly all: boolean },
  ): Promise<void> {
    const unconfirmed: [Listener, number][] = [];
    const hints = hintsOf(group.id, changes);
    await this.#scheduler.each(group.listeners, ([listener, confirmedAt]) => {
      if (all || confirmedAt < group.accessEnded) unconfirmed.push([listener, confirmedAt]);
      // Confirmed meanwhile by another recheck, before these changes arrived.
      else passTimeline(listener, hints);
    });
    for (let start = 0; start < unconfirmed.length; start += recheckBatchSize) {
      if (this.#rechecks.isStopping) return;
      await this.#confirm(group, {
        batch: unconfirmed.slice(start, start + recheckBatchSize),
        changes,
      });
      await nextTurn();
    }
  }

  async #confirm(
    group: Group,
    {
      batch,
      changes,
    }: { readonly batch: readonly (readonly [Listener, number])[]; readonly changes: PendingHints },
  ): Promise<void> {
    const seen = batch.map(([listener, at]) => ({ listener, at, session: listener.session.id }));
    const { readers, ends } = await this.#context.storage.read(async (tx) => {
      const accounts = seen.map(({ listener }) => listener.account);
      const sessions = seen.map(({ session }) => session);
      return {
        readers: await readGroupReaders(tx, group.id, accounts),
        ends: await readEnds(tx, sessions),
      };
    });
    const current = { ...changes, head: readers?.sequence ?? -1 };
    const hints = hintsOf(group.id, current);
    await this.#scheduler.each(seen, ({ listener, at, session }) => {
      const now = group.listeners.get(listener);
      // A listener that subscribed again meanwhile needs a recheck of its own.
      if (now !== undefined && now !== at) this.#recheckLater(group, changes);
      if (now !== at) return;
      if (!applySessionEnd(listener, session, ends)) return;
      if (readers === undefined) {
        listener.leave('group', group.id);
        return;
      }
      if (!mayRead(readers, listener)) {
        // The account may be admitted again: each change is a reason to check it again.
        group.listeners.set(listener, noAccess);
        listener.drop(group.id);
        return;
      }
      group.listeners.set(listener, Math.max(at, current.head));
      passTimeline(listener, hints);
      passLists(listener, changes, hints);
    });
  }
}

function newGroup(empty: Subscribers): Group {
  return {
    ...empty,
    accessEnded: 0,
    pending: undefined,
    unconfirmed: undefined,
    recheckAll: false,
    isNotifying: false,
  };
}

function merge(waiting: PendingHints | undefined, changes: PendingHints): PendingHints {
  if (waiting === undefined) return { head: changes.head, lists: new Map(changes.lists) };
  waiting.head = Math.max(waiting.head, changes.head);
  for (const [list, accounts] of changes.lists) {
    waiting.lists.set(list, (waiting.lists.get(list) ?? new Set()).union(accounts));
  }
  return waiting;
}

interface Hints {
  readonly timeline: Hint | undefined;
  readonly lists: ReadonlyMap<GroupList, Hint>;
}

/** Encodes each hint once, however many connections receive it. */
function hintsOf(group: string, { head, lists }: PendingHints): Hints {
  return {
    timeline: head === -1 ? undefined : groupTimelineHint(group, head),
    lists: new Map([...lists.keys()].map((list) => [list, groupListHint(group, list)])),
  };
}

function passTimeline(listener: Listener, { timeline }: Hints): void {
  if (timeline !== undefined) listener.hint(timeline);
}

function passLists(listener: Listener, changes: PendingHints, { lists }: Hints): void {
  for (const [list, hint] of lists) {
    if (changes.lists.get(list)?.has(listener.account)) listener.hint(hint);
  }
}

function mayRead({ members }: GroupReaders, { account }: Listener): boolean {
  return members.has(account);
}
