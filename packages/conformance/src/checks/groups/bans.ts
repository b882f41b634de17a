/** Bans of members and others, and their end (05 §9.2, §13.19, §13.20). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { assertChainMatches, readChain } from '../../groups/group-reader.ts';

const ban = checksOf('group.member.ban');
const unban = checksOf('group.member.unban');

ban.check(
  'nonmembers',
  { source: '05 §13.19, §7.2', title: 'bans accounts that are not members, in the same epoch' },
  async (context) => {
    const { group, owner, administrators, strangers } = await groupFixture(context, {
      administrators: 1,
      strangers: 1,
    });
    const [ada, eve] = [...administrators, ...strangers] as [TestAccount, TestAccount];
    const { state: before } = await readChain(group, owner);
    await group.ban([eve], ada);
    await group.ban([eve]);
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertEqual(chain.state.epoch, before.epoch, 'the epoch is unchanged');
    assertConforms(chain.state.bans.has(eve.account.id), 'banned');
    assertConforms(chain.state.sequence > before.sequence, 'a repeated ban is an event too');
  },
);

ban.check(
  'mixed',
  { source: '05 §13.19', title: 'accepts members, nonmembers and banned accounts in one batch' },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 2,
    });
    const [ben, eve, fay] = [...members, ...strangers] as [TestAccount, TestAccount, TestAccount];
    await group.ban([eve]);
    const { state: before } = await readChain(group, owner);
    await group.ban([ben, eve, fay]);
    const { state, outcomes } = await readChain(group, owner);
    assertConforms(state.bans.size === 3 && state.members.size === 1, 'all are banned');
    assertConforms(
      state.epoch > before.epoch && outcomes.length === 4,
      'one event, a greater epoch',
    );
  },
);

ban.check(
  'applications',
  {
    source: '05 §9.2, §13.19',
    title: 'deletes applications of the banned accounts and consumes no use',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const invite = await group.invite();
    const application = await group.apply(eve, invite);
    await group.apply(fay, invite);
    await group.ban([eve]);
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 1, 'one is left');
    assertEqual(
      applications[0]?.application.account,
      fay.account.id,
      'the account of the remaining application',
    );
    assertEqual((await readInvites(group, owner)).invites[0]?.uses, 0, 'no use is consumed');
    const method = 'group.application.submit';
    await context.expectError(eve.caller, { method, params: application }, 'forbidden');
    await group.unban([eve]);
    const { applications: after } = await readApplications(group, owner);
    assertEqual(after.length, 1, 'the number of applications after the unban');
    await context.expectOk(eve.caller, method, application);
  },
);

unban.check(
  'lifts',
  { source: '05 §9.2, §13.20', title: 'lifts bans and restores nothing else' },
  async (context) => {
    const { group, owner, members, administrators } = await groupFixture(context, {
      members: 1,
      administrators: 1,
    });
    const [ben, ada] = [...members, ...administrators] as [TestAccount, TestAccount];
    await group.ban([ben]);
    const { state: before } = await readChain(group, owner);
    await group.unban([ben], ada);
    const chain = await readChain(group, owner);
    assertChainMatches(group, chain);
    assertConforms(!chain.state.bans.has(ben.account.id), 'not banned');
    assertEqual(chain.state.members.size, 2, 'the number of members');
    assertEqual(chain.state.epoch, before.epoch, 'the epoch is unchanged');
    const params = { group_id: group.groupId };
    await context.expectError(ben.caller, { method: 'group.sync', params }, 'forbidden');
    await group.admit(ben);
  },
);

unban.check(
  'not-banned',
  { source: '05 §13.20', title: 'appends an unban of accounts that were not banned' },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 1,
    });
    await group.unban([...members, ...strangers, owner]);
    const { state, outcomes } = await readChain(group, owner);
    assertConforms(
      state.members.size === 2 && outcomes.length === 3,
      'one more event, and the same members',
    );
  },
);

export const groupBanChecks = [...ban.list, ...unban.list];
