/** Revocation of invitations (05 §13.12). */
import { nodeRandom } from '@posthouse/primitives-node';
import { createGroupInviteId, type GroupInvite, type JsonObject } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import { resolveGroup, withoutTrace } from '../../groups/group-reader.ts';
import type { GroupActors } from '../../groups/test-group.ts';

const revoke = checksOf('group.invite.revoke');

/** The parameters that name an invitation. */
export function namedInvite(
  group: GroupActors,
  { invite_id }: Pick<GroupInvite, 'invite_id'>,
): JsonObject {
  return { group_id: group.groupId, invite_id };
}

revoke.check(
  'ends',
  { source: '05 §13.12, §8.2', title: 'ends the invitation and all that depends on it at once' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 2 });
    const [eve, fay] = strangers as [Resident, Resident];
    const invite = await group.invite();
    const pending = await group.apply(eve, invite);
    const method = 'group.invite.revoke';
    await withoutTrace(group, owner, () =>
      stage.succeed(owner.caller, method, namedInvite(group, invite)),
    );
    const params = { group_id: group.groupId };
    const list = await stage.succeed(owner.caller, 'group.application.list', params);
    demand((list as { applications: [] }).applications.length === 0, 'no application is listed');
    const approval = { method: 'group.application.approve', params: group.approval([eve]) };
    await stage.fail(owner.caller, approval, 'state_conflict', 'not_found');
    const submit = 'group.application.submit';
    // An identical repeat passes the checks anew, or not at all (13.13).
    await stage.fail(eve.caller, { method: submit, params: pending }, 'forbidden');
    const application = group.application(fay, invite);
    await stage.fail(fay.caller, { method: submit, params: application }, 'forbidden');
    await stage.fail(
      owner.caller,
      { method, params: namedInvite(group, invite) },
      'state_conflict',
    );
  },
);

revoke.check(
  'rights',
  { source: '05 §6, §13.12', title: 'the owner revokes any, all others only their own' },
  async (stage) => {
    const { group, owner, members, administrators } = await sceneOf(stage, {
      members: 1,
      administrators: 1,
      facts: { invite_policy: 'members_shareable' },
    });
    const [ben, ada] = [...members, ...administrators] as [Resident, Resident];
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
      await stage.fail(by.caller, { method, params: namedInvite(group, invite) }, 'forbidden');
    }
    await stage.succeed(ada.caller, method, namedInvite(group, hers));
    await stage.succeed(owner.caller, method, namedInvite(group, his));
    await stage.succeed(owner.caller, method, namedInvite(group, ours));
  },
);

revoke.check(
  'unknown',
  { source: '05 §13.12', title: 'is not_found for an invitation that is not there' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const params = namedInvite(group, { invite_id: createGroupInviteId(nodeRandom) });
    await stage.fail(owner.caller, { method: 'group.invite.revoke', params }, 'not_found');
  },
);

revoke.check(
  'keeps-members',
  { source: '05 §13.12', title: 'changes nothing for those who were admitted' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 1 });
    const [eve] = strangers as [Resident];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.approve([eve]);
    await stage.succeed(owner.caller, 'group.invite.revoke', namedInvite(group, invite));
    demand((await resolveGroup(group, eve)).member_count === 2, 'the member stays');
  },
);

export const groupRevocationChecks = revoke.list;
