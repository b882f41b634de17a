/** Rules of all three lists: cursors, pages, rights (05 §12.7). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import {
  type GroupFixture,
  type GroupFixtureOptions,
  groupFixture,
} from '../../groups/group-fixture.ts';
import { type GroupListName, groupLists, readList } from '../../groups/group-lists.ts';

/** Fills a list with one record for each of the fixture's members or strangers. */
interface ListFixture {
  readonly fixture: GroupFixtureOptions;
  fill(fixture: GroupFixture): Promise<unknown>;
  /** Removes one record. */
  drop(fixture: GroupFixture): Promise<unknown>;
}

const count = 5;

const listFixtures: Readonly<Record<GroupListName, ListFixture>> = {
  'group.invite.list': {
    fixture: {},
    fill: ({ group }) => Promise.all(Array.from({ length: count }, () => group.invite())),
    drop: async ({ group, owner, context }) => {
      const [invite_id] = (await readList('group.invite.list', group, owner)) as [string];
      const params = { group_id: group.groupId, invite_id };
      await context.expectOk(owner.caller, 'group.invite.revoke', params);
    },
  },
  'group.application.list': {
    fixture: { strangers: count },
    fill: async ({ group, strangers }) => {
      const invite = await group.invite();
      await Promise.all(strangers.map((stranger) => group.apply(stranger, invite)));
    },
    drop: ({ group, owner, context, strangers: [first] }) => {
      const params = { group_id: group.groupId, accounts: [(first as TestAccount).account.id] };
      return context.expectOk(owner.caller, 'group.application.reject', params);
    },
  },
  'group.member.recovery.list': {
    fixture: { members: count },
    fill: ({ group, members }) =>
      Promise.all(members.map((member) => group.requestRecovery(member))),
    drop: ({ group, owner, context, members: [first] }) => {
      const params = { group_id: group.groupId, accounts: [(first as TestAccount).account.id] };
      return context.expectOk(owner.caller, 'group.member.recovery.reject', params);
    },
  },
};

async function filled(context: TestContext, method: GroupListName, more: GroupFixtureOptions = {}) {
  const { fixture: options, fill, drop } = listFixtures[method];
  const fixture = await groupFixture(context, { ...more, ...options });
  await fill(fixture);
  return { ...fixture, drop: () => drop(fixture) };
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of independent checks
function listChecks(method: GroupListName) {
  const { check, list } = checksOf(method);
  const read = groupLists[method];

  check(
    'empty',
    { source: '05 §12.7', title: 'returns an empty page without next if there are no records' },
    async (context) => {
      const { group, owner } = await groupFixture(context);
      const { keys, next } = await read(group, owner);
      assertConforms(keys.length === 0 && next === undefined, 'an empty page without next');
    },
  );

  check(
    'traversal',
    { source: '05 §12.7', title: 'returns each record once, in the same order with any page size' },
    async (context) => {
      const { group, owner } = await filled(context, method);
      const whole = await readList(method, group, owner);
      assertConforms(new Set(whole).size === count && whole.length === count, `${count} records`);
      for (const limit of [1, 2, count, Number.MAX_SAFE_INTEGER]) {
        const again = await readList(method, group, owner, limit);
        assertEqual(again.join(), whole.join(), `the records in pages of ${limit}`);
      }
    },
  );

  check(
    'changing',
    { source: '05 §12.7', title: 'reading goes on or ends with not_found if the list changes' },
    async (context) => {
      const { group, owner, drop } = await filled(context, method);
      const { keys, next } = await read(group, owner, { limit: 2 });
      assertConforms(next !== undefined, 'a next cursor');
      await drop();
      const answer = await owner.caller.call(method, { group_id: group.groupId, cursor: next });
      const isExpired = !answer.ok && answer.code === 'not_found';
      assertConforms(answer.ok || isExpired, 'a page, or not_found for the cursor');
      const left = await readList(method, group, owner);
      assertEqual(left.length, count - 1, 'the number of records');
      assertConforms(keys.length <= 2, 'at most as many records as the limit');
    },
  );

  check(
    'cursors',
    { source: '05 §12.7', title: 'refuses invalid limits and unknown cursors' },
    async (context) => {
      const { group, owner } = await filled(context, method);
      const group_id = group.groupId;
      const { next } = await read(group, owner, { limit: 1 });
      assertConforms(next !== undefined, 'a next cursor');
      const call = { by: owner, method };
      const wrong = [
        ['a limit of 0', { group_id, limit: 0 }],
        ['a negative limit', { group_id, limit: -1 }],
        ['a limit of 01', { group_id, limit: '01' }],
        ['an empty cursor', { group_id, cursor: '' }],
        ['a cursor of other characters', { group_id, cursor: `${next}/` }],
      ] as const;
      await assertAllRefused({ ...call, codes: ['bad_request'] }, wrong);
      // For an unknown cursor both codes are permitted: expired or malformed.
      const foreign = [
        ['a cursor that was never issued', { group_id, cursor: 'A'.repeat(24) }],
      ] as const;
      await assertAllRefused({ ...call, codes: ['bad_request', 'not_found'] }, foreign);
      const other = await groupFixture(context);
      const elsewhere = { group_id: other.group.groupId, cursor: next };
      const calls = [['a cursor of another group', elsewhere]] as const;
      const codes = ['bad_request', 'not_found'] as const;
      await assertAllRefused({ by: other.owner, method, codes: [...codes, 'forbidden'] }, calls);
      for (const another of Object.keys(listFixtures).filter((name) => name !== method)) {
        const params = [['a cursor of another list', { group_id, cursor: next }]] as const;
        await assertAllRefused(
          { by: owner, method: another, codes: [...codes, 'forbidden'] },
          params,
        );
      }
    },
  );

  check(
    'right-lost',
    { source: '05 §12.7', title: 'answers forbidden to a cursor if the caller has lost the right' },
    async (context) => {
      const { group, administrators } = await filled(context, method, { administrators: 1 });
      const [ada] = administrators as [TestAccount];
      const { next } = await read(group, ada, { limit: 1 });
      assertConforms(next !== undefined, 'a next cursor');
      await group.setRole(ada, 'member');
      const params = { group_id: group.groupId, cursor: next };
      await context.expectError(ada.caller, { method, params }, 'forbidden');
    },
  );

  check(
    'other-device',
    { source: '05 §12.3', title: 'returns the same list to every device of an account' },
    async (context) => {
      const { group, owner } = await filled(context, method, { devices: 2 });
      const [here, there] = [
        await readList(method, group, owner),
        await readList(method, group, withDevice(owner, 1)),
      ];
      assertEqual(here.join(), there.join(), 'the same records');
    },
  );
  return list;
}

export const groupListChecks = (Object.keys(listFixtures) as GroupListName[]).flatMap(listChecks);
