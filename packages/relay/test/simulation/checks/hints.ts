/** That each change is announced to the connections that may know of it, and to no other. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { Agent, BoundSocket } from '../clients/agent.ts';
import type { Journal } from '../journal.ts';
import type { Scheduler } from '../machine/scheduler.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';

/** Milliseconds after which a hint must have arrived on a connection that lasts. */
const longestHint = 10_000;

/** The statement that reads the head of a topic. */
const headSql = {
  timeline: 'SELECT head FROM timeline_heads WHERE account = ?',
  group: 'SELECT sequence AS head FROM groups WHERE group_id = ?',
  channel: 'SELECT head FROM channels WHERE channel_id = ?',
} as const;
type TopicKind = keyof typeof headSql;

export interface TopicName {
  readonly kind: TopicKind;
  readonly id: string;
}

interface Watch {
  readonly agent: Agent;
  readonly bound: BoundSocket;
  readonly kind: TopicKind;
  readonly id: string;
  /** The highest head that the connection knows of. */
  known: number;
  /** Whether the right to know of it may have ended. */
  isDoubtful: boolean;
  /** The head at which the right to know of it ended. */
  endedAt: number | undefined;
  /** Whether the right ended for good, as the relay acknowledged: its device was removed. */
  isRemoved: boolean;
}

export class Hints {
  readonly #scheduler: Scheduler;
  readonly #journal: Journal;
  #watches: Watch[] = [];
  /** Heads as they were at earlier checks, by relay and topic. */
  readonly #heads = new Map<string, { readonly at: number; readonly head: number }[]>();
  count = 0;

  constructor(scheduler: Scheduler, journal: Journal) {
    this.#scheduler = scheduler;
    this.#journal = journal;
  }

  /** A connection is told of changes from now on. */
  watch(agent: Agent, bound: BoundSocket, { kind, id }: TopicName): void {
    const known = headOf(bound.relay, kind, id);
    this.#watches = this.#watches.filter(
      (watch) => watch.bound !== bound || watch.kind !== kind || watch.id !== id,
    );
    const open = { isDoubtful: false, endedAt: undefined, isRemoved: false };
    this.#watches.push({ agent, bound, kind, id, known, ...open });
  }

  /** The right of these agents to know of a topic, or of all, may end from now on. */
  doubt(agents: readonly Agent[], topic?: TopicName): void {
    for (const watch of this.#find(agents, topic)) watch.isDoubtful = true;
  }

  /**
   * The right of these agents to know of a topic has ended, as the relay acknowledged.
   */
  end(agents: readonly Agent[], topic: TopicName): void {
    for (const watch of this.#find(agents, topic)) this.#end(watch);
  }

  /**
   * A device was removed, and its right to know of anything has ended.
   * @param relay the one that acknowledged it; others learn of it later
   */
  remove(agent: Agent, relay: SimulatedRelay): void {
    for (const watch of this.#find([agent], undefined)) {
      watch.isDoubtful = true;
      if (watch.bound.relay !== relay) continue;
      watch.isRemoved = true;
      this.#end(watch);
    }
  }

  /** The right may begin again from now on, but for removed devices. */
  reopen(agents: readonly Agent[], topic: TopicName): void {
    for (const watch of this.#find(agents, topic)) {
      if (!watch.isRemoved) watch.endedAt = undefined;
    }
  }

  /** The right began again, and with it the subscriptions that there were (05 §13.29). */
  resume(agents: readonly Agent[], topic: TopicName): void {
    for (const watch of this.#find(agents, topic)) {
      watch.isDoubtful = false;
      watch.known = headOf(watch.bound.relay, watch.kind, watch.id);
    }
  }

  #end(watch: Watch): void {
    watch.isDoubtful = true;
    watch.endedAt ??= headOf(watch.bound.relay, watch.kind, watch.id);
  }

  #find(agents: readonly Agent[], topic: TopicName | undefined): Watch[] {
    return this.#watches.filter(
      ({ agent, kind, id }) =>
        agents.includes(agent) && (topic === undefined || (topic.kind === kind && topic.id === id)),
    );
  }

  /** A notification arrived. */
  heard(agent: Agent, bound: BoundSocket, method: string, params: JsonObject): void {
    this.count += 1;
    const topic = topicOf(agent, method, params);
    this.#journal.record(`${agent.name} hears ${method} ${String(params.head ?? '')}`);
    if (topic === undefined) return;
    const watch = this.#watches.find(
      (one) => one.bound === bound && one.kind === topic.kind && one.id === topic.id,
    );
    if (watch === undefined) return;
    this.#journal.must(
      watch.endedAt === undefined || topic.head <= watch.endedAt,
      () => `${agent.name} hears of ${topic.kind} ${topic.id} at ${topic.head}, which it must not`,
    );
    const head = headOf(bound.relay, topic.kind, topic.id);
    this.#journal.must(topic.head <= head, () => `${agent.name} hears of a head that is not there`);
    watch.known = Math.max(watch.known, topic.head);
  }

  /** Checks that no connection lacks a hint. */
  check(): void {
    const now = this.#scheduler.milliseconds;
    this.#watches = this.#watches.filter(({ bound }) => bound.socket.isOpen);
    for (const watch of this.#watches) {
      const { agent, bound, kind, id, isDoubtful } = watch;
      const { relay } = bound;
      const key = `${relay.name} ${kind} ${id}`;
      const heads = this.#heads.get(key) ?? [];
      this.#heads.set(key, heads);
      if (heads.at(-1)?.at !== now) heads.push({ at: now, head: headOf(relay, kind, id) });
      const isOver = relay.clock.now() >= bound.expiresAt || isDoubtful;
      if (relay.process === undefined || isOver) continue;
      const due = heads.findLast(({ at }) => at <= now - longestHint)?.head ?? -1;
      this.#journal.must(
        watch.known >= due,
        () => `${agent.name} was not told of ${kind} ${id} at ${due}; it knows ${watch.known}`,
      );
    }
  }
}

function headOf(relay: SimulatedRelay, kind: TopicKind, id: string): number {
  return relay.disk.query<{ head: number }>(headSql[kind], id)[0]?.head ?? -1;
}

interface Topic extends TopicName {
  readonly head: number;
}

function topicOf({ person }: Agent, method: string, params: JsonObject): Topic | undefined {
  const head = Number(params.head);
  switch (method) {
    case 'message.timeline.changed':
      return { kind: 'timeline', id: person.account, head };
    case 'group.timeline.changed':
      return { kind: 'group', id: String(params.group_id), head };
    case 'channel.timeline.changed':
      return { kind: 'channel', id: String(params.channel_id), head };
    default:
      return undefined;
  }
}
