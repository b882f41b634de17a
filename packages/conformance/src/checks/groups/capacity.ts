/** Capacity and uses, which approvals must not exceed (05 §8.1, §8.3). */

import { assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { assertUnchanged, readChain, resolveGroup } from '../../groups/group-reader.ts';

const approve = checksOf('group.application.approve');
const method = 'group.application.approve';

approve.check(
  'capacity',
  {
    source: '05 §8.3, §13.15',
    title: 'admits up to the capacity, and none of a batch that exceeds it',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, {
      strangers: 3,
      overrides: { member_capacity: 2 },
    });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.apply(fay, invite);
    const refused = (batch: readonly TestAccount[]) =>
      assertUnchanged(group, owner, () =>
        context.expectError(
          owner.caller,
          { method, params: group.approvalParams(batch) },
          'state_conflict',
        ),
      );
    await refused([eve, fay]);
    await group.approve([eve]);
    await refused([fay]);
    await group.update({ member_capacity: 1 });
    assertEqual((await resolveGroup(group, owner)).member_count, 2, 'member_count');
    await refused([fay]);
    await group.update({ member_capacity: 3 });
    await group.approve([fay]);
  },
);

approve.check(
  'uses',
  {
    source: '05 §8.1, §13.15',
    title: 'consumes one use for each account, never more than there are',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 3 });
    const [eve, fay, gus] = strangers as [TestAccount, TestAccount, TestAccount];
    const invite = await group.invite({ max_uses: 2 });
    for (const by of strangers) await group.apply(by, invite);
    const all = { method, params: group.approvalParams([eve, fay, gus]) };
    await assertUnchanged(group, owner, () =>
      context.expectError(owner.caller, all, 'state_conflict'),
    );
    await group.approve([eve, fay]);
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 0, 'the number of listed applications');
    const last = { method, params: group.approvalParams([gus]) };
    await context.expectError(owner.caller, last, 'state_conflict', 'not_found');
  },
);

approve.check(
  'race-for-places',
  { source: '05 §8.3', title: 'one of two concurrent approvals takes the last place' },
  async (context) => {
    const { group, owner, administrators, strangers } = await groupFixture(context, {
      administrators: 1,
      strangers: 2,
      overrides: { member_capacity: 3 },
    });
    const [ada] = administrators as [TestAccount];
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.apply(fay, invite);
    const answers = await Promise.all([
      owner.caller.call(method, group.approvalParams([eve])),
      ada.caller.call(method, group.approvalParams([fay], { by: ada })),
    ]);
    assertEqual(answers.filter(({ ok }) => ok).length, 1, 'exactly one succeeds');
    const { state } = await readChain(group, owner);
    assertEqual(state.members.size, 3, 'the number of members');
    assertEqual((await readInvites(group, owner)).invites[0]?.uses, 1, 'one use');
  },
);

export const groupCapacityChecks = approve.list;
