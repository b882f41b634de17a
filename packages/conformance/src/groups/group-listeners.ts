/** Accounts that subscribe to a group over WSS, and the hints they must get (05 §15). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';
import { pendingNotifications } from '../transport/notifications.ts';
import { readHead } from './group-reader.ts';
import type { TestGroup } from './test-group.ts';

/** The notifications about a group, by a short name. */
const hintMethods = {
  timeline: 'group.timeline.changed',
  applications: 'group.application.changed',
  recoveries: 'group.member.recovery.changed',
} as const;
type Hint = keyof typeof hintMethods;

/** The accounts that must get each hint; no other account may get it. */
export type ExpectedHints = Readonly<Partial<Record<Hint, readonly TestAccount[]>>>;

/**
 * Subscribed accounts of one group. Hints may be repeated, merged and reordered, so only the set of
 * accounts that got a hint at all is asserted.
 */
export class GroupListeners {
  readonly #group: TestGroup;
  readonly #accounts: readonly TestAccount[];

  private constructor(group: TestGroup, accounts: readonly TestAccount[]) {
    this.#group = group;
    this.#accounts = accounts;
  }

  /** Subscribes each account to the group, on its caller's connection. */
  static async of(group: TestGroup, accounts: readonly TestAccount[]): Promise<GroupListeners> {
    const listeners = new GroupListeners(group, accounts);
    for (const account of accounts) await subscribe(account, [group]);
    return listeners;
  }

  /**
   * Asserts that an action causes exactly the expected hints. If no timeline hint is expected, all
   * accounts must still be members. A final update by the owner, which all members must get,
   * shows that no further hint was on its way.
   */
  async expectHints(act: () => Promise<unknown>, expected: ExpectedHints): Promise<void> {
    await act();
    const { sequence } = await readHead(this.#group, this.#group.owner);
    const { timeline } = expected;
    for (const account of timeline ?? []) await this.waitForHead(account, sequence);
    for (const hint of ['applications', 'recoveries'] as const) {
      for (const account of expected[hint] ?? []) await nextHint(account, hint, this.#group);
    }
    await this.#group.update({ description: `after ${sequence}` });
    const { sequence: fence } = await readHead(this.#group, this.#group.owner);
    const readers = timeline ?? this.#accounts;
    for (const account of readers) {
      const hinted = await this.waitForHead(account, fence, timeline === undefined);
      assertEqual(hinted, fence, 'a hint names the head of an event that exists');
    }
    for (const account of this.#accounts) {
      for (const { method, params } of pendingNotifications(account, 'group')) {
        if (method === hintMethods.timeline) {
          assertConforms(readers.includes(account), 'only readers get hints of the timeline');
        } else {
          const hint = method === hintMethods.applications ? 'applications' : 'recoveries';
          assertConforms(
            expected[hint]?.includes(account),
            `only the expected accounts get ${method}`,
          );
        }
        assertEqual(params.group_id, this.#group.groupId, 'a hint names the group it is about');
      }
    }
  }

  /**
   * Waits until an account gets the hint of a head or a later one, and returns that head. With
   * `alone`, a hint of an earlier head is a violation.
   */
  async waitForHead(account: TestAccount, head: number, alone = false): Promise<number> {
    for (;;) {
      const params = await nextHint(account, 'timeline', this.#group);
      const hinted = Number(params.head);
      assertConforms(!alone || hinted >= head, 'no hint of the timeline without a new event');
      if (hinted >= head) return hinted;
    }
  }
}

/** Replaces an account's subscriptions by these groups. */
export async function subscribe(
  { caller }: Pick<TestAccount, 'caller'>,
  groups: readonly TestGroup[],
): Promise<void> {
  const group_ids = groups.map(({ groupId }) => groupId);
  const answer = await caller.call('group.subscribe', { group_ids });
  assertConforms(answer.ok, `group.subscribe succeeds, not ${answer.ok ? '' : answer.code}`);
}

async function nextHint(account: TestAccount, hint: Hint, group: TestGroup): Promise<JsonObject> {
  const params = await (account.caller as WssCaller).notification(hintMethods[hint], 10_000);
  assertEqual(params.group_id, group.groupId, 'a hint names the group it is about');
  return params;
}
