/** People who listen to a group over WSS, and what they hear (05 §15). */
import type { JsonObject } from '@posthouse/protocol';
import { demand } from '../assert.ts';
import type { Resident } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';
import { hintsOf } from '../transport/notifications.ts';
import { readHead } from './group-reader.ts';
import type { GroupActors } from './test-group.ts';

/** The hints about a group; every one of them has a name here and a method on the wire. */
const hintMethods = {
  timeline: 'group.timeline.changed',
  applications: 'group.application.changed',
  recoveries: 'group.member.recovery.changed',
} as const;
type Hint = keyof typeof hintMethods;

/** Whom each hint must reach; it must reach nobody else. */
export type Hearing = Readonly<Partial<Record<Hint, readonly Resident[]>>>;

/** Hints may be repeated, merged and reordered: what counts is who hears of what at all. */
export class GroupListeners {
  readonly #group: GroupActors;
  readonly #people: readonly Resident[];

  private constructor(group: GroupActors, people: readonly Resident[]) {
    this.#group = group;
    this.#people = people;
  }

  /** Subscribes the group for people; each listens on the connection of its caller. */
  static async of(group: GroupActors, people: readonly Resident[]): Promise<GroupListeners> {
    const listeners = new GroupListeners(group, people);
    for (const person of people) await subscribe(person, [group]);
    return listeners;
  }

  /**
   * Demands that an act reaches these people with these hints, and nobody with any other. Where no
   * event is expected all are members still. An update by the owner closes it, which everybody
   * inside hears.
   */
  async expect(act: () => Promise<unknown>, hearing: Hearing): Promise<void> {
    await act();
    const { sequence } = await readHead(this.#group, this.#group.owner);
    const { timeline } = hearing;
    for (const person of timeline ?? []) await this.hears(person, sequence);
    for (const hint of ['applications', 'recoveries'] as const) {
      for (const person of hearing[hint] ?? []) await takeHint(person, hint, this.#group);
    }
    await this.#group.update({ description: `behind ${sequence}` });
    const { sequence: fence } = await readHead(this.#group, this.#group.owner);
    const readers = timeline ?? this.#people;
    for (const person of readers) {
      const told = await this.hears(person, fence, timeline === undefined);
      demand(told === fence, 'no head is told that no event has');
    }
    for (const person of this.#people) {
      for (const { method, params } of hintsOf(person, 'group')) {
        if (method === hintMethods.timeline) {
          demand(readers.includes(person), 'the timeline is told to readers alone');
        } else {
          const hint = method === hintMethods.applications ? 'applications' : 'recoveries';
          demand(hearing[hint]?.includes(person), `${method} is told to nobody else`);
        }
        demand(params.group_id === this.#group.groupId, 'of this group');
      }
    }
  }

  /**
   * Waits until somebody has heard of a head or of a later one; of no other events before where
   * `alone`. Says what was told.
   */
  async hears(person: Resident, head: number, alone = false): Promise<number> {
    for (;;) {
      const params = await takeHint(person, 'timeline', this.#group);
      const told = Number(params.head);
      demand(!alone || told >= head, 'no hint of the timeline without an event');
      if (told >= head) return told;
    }
  }
}

/** Replaces somebody's subscriptions by these groups. */
export async function subscribe(
  { caller }: Pick<Resident, 'caller'>,
  groups: readonly GroupActors[],
): Promise<void> {
  const group_ids = groups.map(({ groupId }) => groupId);
  const answer = await caller.call('group.subscribe', { group_ids });
  demand(answer.ok, `group.subscribe succeeds, not ${answer.ok ? '' : answer.code}`);
}

async function takeHint(person: Resident, hint: Hint, group: GroupActors): Promise<JsonObject> {
  const params = await (person.caller as WssCaller).notification(hintMethods[hint], 10_000);
  demand(params.group_id === group.groupId, 'a hint names the group it is about');
  return params;
}
