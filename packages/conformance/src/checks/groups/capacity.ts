/** Places and uses, which approvals must not exceed (05 §8.1, §8.3). */

import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { readChain, resolveGroup, withoutTrace } from '../../groups/group-reader.ts';

const approve = checksOf('group.application.approve');
const method = 'group.application.approve';

approve.check(
  'capacity',
  { source: '05 §8.3, §13.15', title: 'admits up to the capacity and not beyond, whole' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, {
      strangers: 3,
      facts: { member_capacity: 2 },
    });
    const [eve, fay] = strangers as [Resident, Resident];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.apply(fay, invite);
    const refused = (people: readonly Resident[]) =>
      withoutTrace(group, owner, () =>
        stage.fail(owner.caller, { method, params: group.approval(people) }, 'state_conflict'),
      );
    await refused([eve, fay]);
    await group.approve([eve]);
    await refused([fay]);
    await group.update({ member_capacity: 1 });
    demand((await resolveGroup(group, owner)).member_count === 2, 'nobody goes for it');
    await refused([fay]);
    await group.update({ member_capacity: 3 });
    await group.approve([fay]);
  },
);

approve.check(
  'uses',
  { source: '05 §8.1, §13.15', title: 'consumes one use for each, never more than there are' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 3 });
    const [eve, fay, gus] = strangers as [Resident, Resident, Resident];
    const invite = await group.invite({ max_uses: 2 });
    for (const by of strangers) await group.apply(by, invite);
    const all = { method, params: group.approval([eve, fay, gus]) };
    await withoutTrace(group, owner, () => stage.fail(owner.caller, all, 'state_conflict'));
    await group.approve([eve, fay]);
    const { applications } = await readApplications(group, owner);
    demand(applications.length === 0, 'what is left over is not listed any more');
    const last = { method, params: group.approval([gus]) };
    await stage.fail(owner.caller, last, 'state_conflict', 'not_found');
  },
);

approve.check(
  'race-for-places',
  { source: '05 §8.3', title: 'of two approvals at once one takes the last place' },
  async (stage) => {
    const { group, owner, administrators, strangers } = await sceneOf(stage, {
      administrators: 1,
      strangers: 2,
      facts: { member_capacity: 3 },
    });
    const [ada] = administrators as [Resident];
    const [eve, fay] = strangers as [Resident, Resident];
    const invite = await group.invite();
    await group.apply(eve, invite);
    await group.apply(fay, invite);
    const answers = await Promise.all([
      owner.caller.call(method, group.approval([eve])),
      ada.caller.call(method, group.approval([fay], { by: ada })),
    ]);
    demand(answers.filter(({ ok }) => ok).length === 1, 'exactly one succeeds');
    const { state } = await readChain(group, owner);
    demand(state.members.size === 3, 'the group is full');
    demand((await readInvites(group, owner)).invites[0]?.uses === 1, 'one use');
  },
);

export const groupCapacityChecks = approve.list;
