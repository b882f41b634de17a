/** People who listen to a group over WSS, and what they hear (05 §15). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';
import { pendingNotifications } from '../transport/notifications.ts';
import { readHead } from './group-reader.ts';
import type { TestGroup } from './test-group.ts';

/** The hints about a group; every one of them has a name here and a method on the wire. */
const hintMethods = {
  timeline: 'group.timeline.changed',
  applications: 'group.application.changed',
  recoveries: 'group.member.recovery.changed',
} as const;
type Hint = keyof typeof hintMethods;

/** Whom each hint must reach; it must reach nobody else. */
export type ExpectedHints = Readonly<Partial<Record<Hint, readonly TestAccount[]>>>;

/** Hints may be repeated, merged and reordered: what counts is who hears of what at all. */
export class GroupListeners {
  readonly #group: TestGroup;
  readonly #people: readonly TestAccount[];

  private constructor(group: TestGroup, people: readonly TestAccount[]) {
    this.#group = group;
    this.#people = people;
  }

  /** Subscribes the group for people; each listens on the connection of its caller. */
  static async of(group: TestGroup, people: readonly TestAccount[]): Promise<GroupListeners> {
    const listeners = new GroupListeners(group, people);
    for (const person of people) await subscribe(person, [group]);
    return listeners;
  }

  /**
   * Demands that an act reaches these people with these hints, and nobody with any other. Where no
   * event is expected all are members still. An update by the owner closes it, which everybody
   * inside hears.
   */
  async expectHints(act: () => Promise<unknown>, hearing: ExpectedHints): Promise<void> {
    await act();
    const { sequence } = await readHead(this.#group, this.#group.owner);
    const { timeline } = hearing;
    for (const person of timeline ?? []) await this.waitForHead(person, sequence);
    for (const hint of ['applications', 'recoveries'] as const) {
      for (const person of hearing[hint] ?? []) await nextHint(person, hint, this.#group);
    }
    await this.#group.update({ description: `behind ${sequence}` });
    const { sequence: fence } = await readHead(this.#group, this.#group.owner);
    const readers = timeline ?? this.#people;
    for (const person of readers) {
      const told = await this.waitForHead(person, fence, timeline === undefined);
      assertConforms(told === fence, 'no head is told that no event has');
    }
    for (const person of this.#people) {
      for (const { method, params } of pendingNotifications(person, 'group')) {
        if (method === hintMethods.timeline) {
          assertConforms(readers.includes(person), 'the timeline is told to readers alone');
        } else {
          const hint = method === hintMethods.applications ? 'applications' : 'recoveries';
          assertConforms(hearing[hint]?.includes(person), `${method} is told to nobody else`);
        }
        assertConforms(params.group_id === this.#group.groupId, 'of this group');
      }
    }
  }

  /**
   * Waits until somebody has heard of a head or of a later one; of no other events before where
   * `alone`. Says what was told.
   */
  async waitForHead(person: TestAccount, head: number, alone = false): Promise<number> {
    for (;;) {
      const params = await nextHint(person, 'timeline', this.#group);
      const told = Number(params.head);
      assertConforms(!alone || told >= head, 'no hint of the timeline without an event');
      if (told >= head) return told;
    }
  }
}

/** Replaces somebody's subscriptions by these groups. */
export async function subscribe(
  { caller }: Pick<TestAccount, 'caller'>,
  groups: readonly TestGroup[],
): Promise<void> {
  const group_ids = groups.map(({ groupId }) => groupId);
  const answer = await caller.call('group.subscribe', { group_ids });
  assertConforms(answer.ok, `group.subscribe succeeds, not ${answer.ok ? '' : answer.code}`);
}

async function nextHint(person: TestAccount, hint: Hint, group: TestGroup): Promise<JsonObject> {
  const params = await (person.caller as WssCaller).notification(hintMethods[hint], 10_000);
  assertConforms(params.group_id === group.groupId, 'a hint names the group it is about');
  return params;
}
