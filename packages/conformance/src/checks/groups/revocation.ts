/** Revocation of invitations (05 §13.12). */

import { createGroupInviteId } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { namedInvite } from '../../groups/group-objects.ts';
import { assertUnchanged, resolveGroup } from '../../groups/group-reader.ts';

const revoke = checksOf('group.invite.revoke');

revoke.check(
  'ends',
  { source: '05 §13.12, §8.2', title: 'ends the invitation and its applications at once' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const invite = await group.invite();
    const pending = await group.apply(eve, invite);
    const method = 'group.invite.revoke';
    await assertUnchanged(group, owner, () =>
      context.expectOk(owner.caller, method, namedInvite(group, invite)),
    );
    const params = { group_id: group.groupId };
    const list = await context.expectOk(owner.caller, 'group.application.list', params);
    assertEqual(
      (list as { applications: [] }).applications.length,
      0,
      'the number of applications',
    );
    const approval = { method: 'group.application.approve', params: group.approvalParams([eve]) };
    await context.expectError(owner.caller, approval, 'state_conflict', 'not_found');
    const submit = 'group.application.submit';
    // An identical repeat must pass the checks again (13.13).
    await context.expectError(eve.caller, { method: submit, params: pending }, 'forbidden');
    const application = group.application(fay, invite);
    await context.expectError(fay.caller, { method: submit, params: application }, 'forbidden');
    await context.expectError(
      owner.caller,
      { method, params: namedInvite(group, invite) },
      'state_conflict',
    );
  },
);

revoke.check(
  'rights',
  {
    source: '05 §6, §13.12',
    title: 'the owner may revoke all invitations, other members their own',
  },
  async (context) => {
    const { group, owner, members, administrators } = await groupFixture(context, {
      members: 1,
      administrators: 1,
      overrides: { invite_policy: 'members_shareable' },
    });
    const [ben, ada] = [...members, ...administrators] as [TestAccount, TestAccount];
    const [ours, hers, his] = [
      await group.invite(),
      await group.invite({}, ada),
      await group.invite({}, ben),
    ];
    const method = 'group.invite.revoke';
    for (const [by, invite] of [
      [ada, ours],
      [ada, his],
      [ben, ours],
      [ben, hers],
    ] as const) {
      await context.expectError(
        by.caller,
        { method, params: namedInvite(group, invite) },
        'forbidden',
      );
    }
    await context.expectOk(ada.caller, method, namedInvite(group, hers));
    await context.expectOk(owner.caller, method, namedInvite(group, his));
    await context.expectOk(owner.caller, method, namedInvite(group, ours));
  },
);

revoke.check(
  'unknown',
  { source: '05 §13.12', title: 'answers not_found for an unknown invitation' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const params = namedInvite(group, { invite_id: createGroupInviteId(nodeRandom) });
    await context.expectError(owner.caller, { method: 'group.invite.revoke', params }, 'not_found');
  },
);

revoke.check(
  'keeps-members',
  { source: '05 §13.12', title: 'does not change the membership of admitted accounts' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.approve([eve]);
    await context.expectOk(owner.caller, 'group.invite.revoke', namedInvite(group, invite));
    assertEqual((await resolveGroup(group, eve)).member_count, 2, 'member_count');
  },
);

export const groupRevocationChecks = revoke.list;
