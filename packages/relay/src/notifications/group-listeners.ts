import { readEnds } from '../auth/index.ts';
import type { Notice } from '../call.ts';
import type { RelayContext } from '../context.ts';
import { type GroupStanding, readGroupStanding } from '../groups/index.ts';
import { hintsDelayed } from '../observability/events.ts';
import { type GroupList, groupListHint, groupTimelineHint, type Hint } from './hint.ts';
import type { Listener } from './hub.ts';

/** Connections told, or looked up, before others get their turn. */
const portion = 250;
/** Milliseconds until rights that could not be looked up are looked up again. */
const retryAfter = 2_000;

type GroupNotice = Extract<Notice, { group: string }>;
type Context = Pick<RelayContext, 'bus' | 'clock' | 'log' | 'metrics' | 'storage'>;

/** What is to be told of a group. */
interface News {
  /** Of the timeline; -1 for nothing new. */
  head: number;
  /** Accounts that must hear of a list. */
  readonly lists: Map<GroupList, Set<string>>;
}

/** A group that somebody here subscribed. */
interface Subscribed {
  readonly id: string;
  /** Each with the sequence of the group at which its right to read was last confirmed. */
  readonly listeners: Map<Listener, number>;
  /** What every listener was told of, or is about to be. */
  head: number;
  /** Who was confirmed before this sequence may have lost the right to read. */
  accessEnded: number;
  /** To be told, and for those who must be looked up first. */
  news: News | undefined;
  doubted: News | undefined;
  /** Whether no confirmation counts for what is doubted. */
  doubtsEverybody: boolean;
  isTelling: boolean;
}

/**
 * The connections that subscribed groups, and what they hear (05 §15). Their right to read was
 * confirmed once; only when a commit ended somebody's right since, or notices of removed devices
 * may not have arrived, storage is asked again before anybody is told. Nobody waits for that, and
 * nothing queues: what is to be told of a group meanwhile becomes one.
 */
export class GroupListeners implements AsyncDisposable {
  readonly #context: Context;
  readonly #groups = new Map<string, Subscribed>();
  readonly #doubtful = new Set<Subscribed>();
  #looking: Promise<void> | undefined;
  #retry: Disposable | undefined;
  #isStopping = false;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Groups that somebody here subscribed. */
  groups(): string[] {
    return [...this.#groups.keys()];
  }

  /** @param confirmedAt sequence of the group when the right to read was seen */
  join(listener: Listener, id: string, confirmedAt: number): void {
    const group = this.#groups.get(id) ?? newGroup(id, confirmedAt);
    const before = group.listeners.get(listener) ?? confirmedAt;
    group.listeners.set(listener, Math.max(before, confirmedAt));
    this.#groups.set(id, group);
  }

  leave(listener: Listener, id: string): void {
    const group = this.#groups.get(id);
    group?.listeners.delete(listener);
    if (group?.listeners.size !== 0) return;
    this.#groups.delete(id);
    this.#doubtful.delete(group);
  }

  /** Passes a notice on to whom it concerns here. */
  tell(notice: GroupNotice): void {
    const group = this.#groups.get(notice.group);
    if (group === undefined) return;
    if (notice.kind === 'group-timeline') {
      const { head, accessEnded } = notice;
      if (head <= group.head && accessEnded <= group.accessEnded) return;
      group.head = Math.max(group.head, head);
      group.accessEnded = Math.max(group.accessEnded, accessEnded);
      group.news = merge(group.news, { head, lists: new Map() });
    } else {
      const list = notice.kind === 'group-applications' ? 'applications' : 'recoveries';
      const lists = new Map([[list, new Set(notice.accounts)] as const]);
      group.news = merge(group.news, { head: -1, lists });
    }
    if (!group.isTelling) void this.#tellAll(group);
  }

  /** Lets the look at storage under way finish and begins no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#retry?.[Symbol.dispose]();
    await this.#looking;
  }

  /** A first portion at once, the others in turns of their own. */
  async #tellAll(group: Subscribed): Promise<void> {
    group.isTelling = true;
    for (let news = group.news; news !== undefined; news = group.news) {
      group.news = undefined;
      const hints = hintsOf(group.id, news);
      let isDoubted = false;
      let count = 0;
      for (const [listener, confirmedAt] of group.listeners) {
        // Who stands in a list had the right in the commit. While notices of removed devices may be
        // missed, storage alone knows who may hear anything.
        if (!this.#context.bus.isWhole) {
          group.doubtsEverybody = true;
        } else {
          passLists(listener, news, hints);
          if (confirmedAt >= group.accessEnded) passTimeline(listener, hints);
          else isDoubted = true;
        }
        count += 1;
        if (count % portion === 0) await nextTurn();
      }
      if (group.doubtsEverybody) this.#doubt(group, news);
      else if (isDoubted) this.#doubt(group, { head: news.head, lists: new Map() });
    }
    group.isTelling = false;
    this.#lookUpSoon();
  }

  #doubt(group: Subscribed, news: News): void {
    group.doubted = merge(group.doubted, news);
    this.#doubtful.add(group);
  }

  #lookUpSoon(): void {
    if (this.#doubtful.size === 0 || this.#isStopping || this.#retry !== undefined) return;
    this.#looking ??= this.#lookUp();
  }

  /** One group after another; what comes meanwhile is looked up too. */
  async #lookUp(): Promise<void> {
    for (const group of this.#doubtful) {
      if (this.#isStopping) break;
      this.#doubtful.delete(group);
      const news = group.doubted ?? { head: -1, lists: new Map() };
      const everybody = group.doubtsEverybody;
      group.doubted = undefined;
      group.doubtsEverybody = false;
      try {
        await this.#confirmAll(group, { news, everybody });
      } catch (error) {
        this.#doubt(group, news);
        group.doubtsEverybody ||= everybody;
        this.#tryLater(error);
        break;
      }
    }
    this.#looking = undefined;
    this.#lookUpSoon();
  }

  #tryLater(error: unknown): void {
    const { clock } = this.#context;
    hintsDelayed(this.#context, error);
    this.#retry = clock.after(retryAfter, () => {
      this.#retry = undefined;
      this.#lookUpSoon();
    });
  }

  async #confirmAll(
    group: Subscribed,
    { news, everybody }: { readonly news: News; readonly everybody: boolean },
  ): Promise<void> {
    const doubtful: [Listener, number][] = [];
    const hints = hintsOf(group.id, news);
    for (const [listener, confirmedAt] of group.listeners) {
      if (everybody || confirmedAt < group.accessEnded) doubtful.push([listener, confirmedAt]);
      // Confirmed since, by a look that did not see this news.
      else passTimeline(listener, hints);
    }
    for (let start = 0; start < doubtful.length && !this.#isStopping; start += portion) {
      await this.#confirm(group, { some: doubtful.slice(start, start + portion), news });
      await nextTurn();
    }
  }

  async #confirm(
    group: Subscribed,
    {
      some,
      news,
    }: { readonly some: readonly (readonly [Listener, number])[]; readonly news: News },
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
      if (listener.session.id === session && !stillRuns(listener, ends.get(session))) continue;
      if (!mayRead(standing, listener)) {
        listener.leaveGroup(group.id);
        continue;
      }
      group.listeners.set(listener, Math.max(at, told.head));
      passTimeline(listener, hints);
      passLists(listener, news, hints);
    }
  }
}

function newGroup(id: string, sequence: number): Subscribed {
  return {
    id,
    listeners: new Map(),
    head: sequence,
    accessEnded: 0,
    news: undefined,
    doubted: undefined,
    doubtsEverybody: false,
    isTelling: false,
  };
}

function merge(waiting: News | undefined, news: News): News {
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
function hintsOf(group: string, { head, lists }: News): Hints {
  return {
    timeline: head === -1 ? undefined : groupTimelineHint(group, head),
    lists: new Map([...lists.keys()].map((list) => [list, groupListHint(group, list)])),
  };
}

function passTimeline(listener: Listener, { timeline }: Hints): void {
  if (timeline !== undefined) listener.hint(timeline);
}

function passLists(listener: Listener, news: News, { lists }: Hints): void {
  for (const [list, hint] of lists) {
    if (news.lists.get(list)?.has(listener.account)) listener.hint(hint);
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Ends a session that storage does not have any more, with its device's certificate at the latest. */
function stillRuns(listener: Listener, end: number | undefined): boolean {
  if (end === undefined) listener.revoke();
  else listener.cap(end);
  return end !== undefined;
}

function mayRead(standing: GroupStanding | undefined, { account }: Listener): boolean {
  return standing?.members.has(account) === true;
}
