import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { type GroupStanding, readGroupStanding } from '../groups/index.ts';
import { readEnds } from '../sessions/session-store.ts';
import { FairScheduler, nextTurn, pauseAfter } from './fair-scheduler.ts';
import { type GroupList, groupListHint, groupTimelineHint, type Hint } from './hint.ts';
import type { Listener } from './listener.ts';
import { applySessionEnd, RecheckQueue, recheckBatchSize } from './recheck-queue.ts';
import { SubscriberMap, type Subscribers, type TopicListeners } from './subscribers.ts';

type GroupNotice = Extract<Notice, { group: string }>;
type Context = Pick<RelayContext, 'bus' | 'clock' | 'log' | 'metrics' | 'storage'>;

/** What is to be told of a group. */
interface PendingHints {
  /** Of the timeline; -1 for nothing new. */
  head: number;
  /** Accounts that must hear of a list. */
  readonly lists: Map<GroupList, Set<string>>;
}

interface Group extends Subscribers {
  /** Who was confirmed before this sequence may have lost the right to read. */
  accessEnded: number;
  /** To be told, and for those who must be looked up first. */
  pending: PendingHints | undefined;
  unconfirmed: PendingHints | undefined;
  /** Whether no confirmation counts for what is doubted. */
  recheckAll: boolean;
  isNotifying: boolean;
}

/**
 * The connections that subscribed groups, and what they hear (05 §15). Their right to read was
 * confirmed once; only when a commit ended somebody's right since, or notices of removed devices
 * may not have arrived, storage is asked again before anybody is told. Nobody waits for that, and
 * nothing queues: what is to be told of a group meanwhile becomes one.
 */
export class GroupListeners implements TopicListeners, AsyncDisposable {
  readonly #context: Context;
  readonly #groups: SubscriberMap<Group>;
  readonly #lookUps: RecheckQueue<Group>;
  readonly #turns: FairScheduler;

  constructor(context: Context, turns = new FairScheduler()) {
    this.#context = context;
    this.#turns = turns;
    this.#lookUps = new RecheckQueue(context, (group) => this.#lookUp(group));
    this.#groups = new SubscriberMap(newGroup, (group) => this.#lookUps.delete(group));
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
    const news = { head: group.head, lists: new Map() };
    if (this.#context.bus.isConnected && confirmedAt >= group.accessEnded) {
      passTimeline(listener, hintsOf(id, news));
      return;
    }
    if (!this.#context.bus.isConnected) group.recheckAll = true;
    this.#doubt(group, news);
    this.#lookUps.start();
  }

  /** @see TopicListeners */
  leave(listener: Listener, id: string): void {
    this.#groups.leave(listener, id);
  }

  /** Passes a notice on to whom it concerns here. */
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
    if (!group.isNotifying) void this.#tellAll(group);
  }

  /** Lets the look at storage under way finish and begins no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lookUps[Symbol.asyncDispose]();
  }

  async #tellAll(group: Group): Promise<void> {
    group.isNotifying = true;
    for (let news = group.pending; news !== undefined; news = group.pending) {
      const told = news;
      const began = this.#context.clock.monotonic();
      group.pending = undefined;
      const hints = hintsOf(group.id, told);
      let isDoubted = false;
      await this.#turns.each(group.listeners, ([listener, confirmedAt]) => {
        // It may have left while it waited for its turn.
        if (!group.listeners.has(listener)) return;
        // Who stands in a list had the right in the commit. While notices of removed devices may be
        // missed, storage alone knows who may hear anything.
        if (!this.#context.bus.isConnected) {
          group.recheckAll = true;
          return;
        }
        passLists(listener, told, hints);
        if (confirmedAt >= group.accessEnded) passTimeline(listener, hints);
        else isDoubted = true;
      });
      if (group.recheckAll) this.#doubt(group, told);
      else if (isDoubted) this.#doubt(group, { head: told.head, lists: new Map() });
      this.#lookUps.start();
      // Each hint makes members read: a lively group of thousands leaves others half of the time.
      await pauseAfter(this.#context.clock, began);
    }
    group.isNotifying = false;
  }

  #doubt(group: Group, news: PendingHints): void {
    group.unconfirmed = merge(group.unconfirmed, news);
    this.#lookUps.add(group);
  }

  async #lookUp(group: Group): Promise<void> {
    const news = group.unconfirmed ?? { head: -1, lists: new Map() };
    const everybody = group.recheckAll;
    group.unconfirmed = undefined;
    group.recheckAll = false;
    try {
      await this.#confirmAll(group, { news, everybody });
    } catch (error) {
      group.unconfirmed = merge(group.unconfirmed, news);
      group.recheckAll ||= everybody;
      throw error;
    }
  }

  async #confirmAll(
    group: Group,
    { news, everybody }: { readonly news: PendingHints; readonly everybody: boolean },
  ): Promise<void> {
    const doubtful: [Listener, number][] = [];
    const hints = hintsOf(group.id, news);
    for (const [listener, confirmedAt] of group.listeners) {
      if (everybody || confirmedAt < group.accessEnded) doubtful.push([listener, confirmedAt]);
      // Confirmed since, by a look that did not see this news.
      else passTimeline(listener, hints);
    }
    for (let start = 0; start < doubtful.length; start += recheckBatchSize) {
      if (this.#lookUps.isStopping) return;
      await this.#confirm(group, { some: doubtful.slice(start, start + recheckBatchSize), news });
      await nextTurn();
    }
  }

  async #confirm(
    group: Group,
    {
      some,
      news,
    }: { readonly some: readonly (readonly [Listener, number])[]; readonly news: PendingHints },
  ): Promise<void> {
    const seen = some.map(([listener, at]) => ({ listener, at, session: listener.session.id }));
    const { standing, ends } = await this.#context.storage.read(async (tx) => {
      const accounts = seen.map(({ listener }) => listener.account);
      const sessions = seen.map(({ session }) => session);
      return {
        standing: await readGroupStanding(tx, group.id, accounts),
        ends: await readEnds(tx, sessions),
      };
    });
    const told = { ...news, head: standing?.sequence ?? -1 };
    const hints = hintsOf(group.id, told);
    for (const { listener, at, session } of seen) {
      const now = group.listeners.get(listener);
      // Who subscribed again meanwhile was not meant by this look, but by the news.
      if (now !== undefined && now !== at) this.#doubt(group, news);
      if (now !== at) continue;
      if (!applySessionEnd(listener, session, ends)) continue;
      if (!mayRead(standing, listener)) {
        listener.leave('group', group.id);
        continue;
      }
      group.listeners.set(listener, Math.max(at, told.head));
      passTimeline(listener, hints);
      passLists(listener, news, hints);
    }
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

function merge(waiting: PendingHints | undefined, news: PendingHints): PendingHints {
  if (waiting === undefined) return { head: news.head, lists: new Map(news.lists) };
  waiting.head = Math.max(waiting.head, news.head);
  for (const [list, accounts] of news.lists) {
    waiting.lists.set(list, (waiting.lists.get(list) ?? new Set()).union(accounts));
  }
  return waiting;
}

interface Hints {
  readonly timeline: Hint | undefined;
  readonly lists: ReadonlyMap<GroupList, Hint>;
}

/** Each is encoded once, however many connections hear it. */
function hintsOf(group: string, { head, lists }: PendingHints): Hints {
  return {
    timeline: head === -1 ? undefined : groupTimelineHint(group, head),
    lists: new Map([...lists.keys()].map((list) => [list, groupListHint(group, list)])),
  };
}

function passTimeline(listener: Listener, { timeline }: Hints): void {
  if (timeline !== undefined) listener.hint(timeline);
}

function passLists(listener: Listener, news: PendingHints, { lists }: Hints): void {
  for (const [list, hint] of lists) {
    if (news.lists.get(list)?.has(listener.account)) listener.hint(hint);
  }
}

function mayRead(standing: GroupStanding | undefined, { account }: Listener): boolean {
  return standing?.members.has(account) === true;
}
