/** Applications: submitted, listed, rejected (05 §8.2, §13.13, §13.14, §13.16). */

import { createGroupInviteId } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readApplications, readInvites } from '../../groups/group-lists.ts';
import { assertUnchanged, resolveGroup } from '../../groups/group-reader.ts';

const submit = checksOf('group.application.submit');
const listing = checksOf('group.application.list');
const reject = checksOf('group.application.reject');
const resolve = checksOf('group.resolve');

const conflict = { method: 'group.application.submit', codes: ['state_conflict'] } as const;
const forbidden = { method: 'group.application.submit', codes: ['forbidden'] } as const;

submit.check(
  'pends',
  {
    source: '05 §13.13, §13.14',
    title: 'stores the application for the managers and appends no event',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const invite = await group.invite();
    const application = await assertUnchanged(group, owner, () => group.apply(eve, invite));
    const { applications } = await readApplications(group, owner);
    const [item, ...more] = applications;
    assertConforms(item !== undefined && more.length === 0, 'one application');
    assertEqual(item.application, application, 'unchanged');
    assertConforms(Math.abs(item.accepted_at - unixSeconds()) <= 300, 'accepted now');
    assertEqual((await resolveGroup(group, owner)).member_count, 1, 'member_count');
    const { invites } = await readInvites(group, owner);
    assertEqual(invites[0]?.uses, 0, 'no use is consumed');
  },
);

submit.check(
  'repeat',
  { source: '05 §13.13', title: 'an identical repeat over either transport changes nothing' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const application = await group.apply(eve, await group.invite());
    const before = await readApplications(group, owner);
    await context.expectOk(eve.caller, conflict.method, application);
    const other = await context.deviceSession(eve.device, context.otherTransport);
    await context.expectOk(other, conflict.method, application);
    const after = await readApplications(group, owner);
    assertEqual(after, before, 'the list is the same');
  },
);

submit.check(
  'replaces',
  { source: '05 §8.2, §13.13', title: "a new application replaces the account's previous one" },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1, devices: 2 });
    const [eve] = strangers as [TestAccount];
    const [first, second] = [await group.invite(), await group.invite()];
    await group.apply(eve, first);
    const application = await group.apply(withDevice(eve, 1), second);
    const { applications } = await readApplications(group, owner);
    const [item, ...more] = applications;
    assertConforms(item !== undefined && more.length === 0, 'one application');
    assertEqual(item.application, application, 'the later one');
    await group.approve([eve]);
  },
);

submit.check(
  'race',
  { source: '05 §8.2, §13.13', title: 'one of several concurrent applications is pending' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const invite = await group.invite();
    const all = [1, 2, 3].map(() => group.application(eve, invite));
    const answers = await Promise.all(
      all.map((application) => eve.caller.call(conflict.method, application)),
    );
    assertConforms(
      answers.some(({ ok }) => ok),
      'at least one succeeds',
    );
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'the others are state_conflict',
      );
    }
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 1, 'one is pending');
  },
);

submit.check(
  'another-account',
  { source: '05 §13.13', title: 'answers forbidden in the name of another account' },
  async (context) => {
    const { group, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const params = group.application(eve, await group.invite(), { account: fay.account.id });
    await context.expectError(eve.caller, { method: conflict.method, params }, 'forbidden');
  },
);

submit.check(
  'no-invitation',
  { source: '05 §13.13', title: 'answers forbidden without an invitation that the caller can use' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const other = await groupFixture(context);
    const [revoked, used] = [await group.invite(), await group.invite({ max_uses: 1 })];
    const invites = {
      'no such invitation': { invite_id: createGroupInviteId(nodeRandom) },
      'an invitation of another group': await other.group.invite(),
      'an invitation for another account': await group.invite({ invitee: fay.account.id }),
      'a revoked invitation': revoked,
      'an invitation used up': used,
    };
    const params = { group_id: group.groupId, invite_id: revoked.invite_id };
    await context.expectOk(owner.caller, 'group.invite.revoke', params);
    await group.apply(fay, used);
    await group.approve([fay]);
    const calls = Object.entries(invites).map(([what, invite]) => {
      return [what, group.application(eve, invite)] as const;
    });
    await assertAllRefused({ by: eve, ...forbidden }, calls);
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 0, 'nothing is pending');
  },
);

submit.check(
  'targeted',
  { source: '05 §8.1', title: 'a targeted invitation serves its account, once' },
  async (context) => {
    const { group, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const invite = await group.invite({ invitee: eve.account.id });
    await group.apply(eve, invite);
    await group.approve([eve]);
    await group.leave(eve);
    await assertAllRefused({ by: eve, ...forbidden }, [
      ['a second use', group.application(eve, invite)],
    ]);
  },
);

submit.check(
  'member',
  { source: '05 §13.13', title: 'answers state_conflict for a member' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const invite = await group.invite();
    for (const by of [ben, owner]) {
      await assertAllRefused({ by, ...conflict }, [['a member', group.application(by, invite)]]);
    }
  },
);

resolve.check(
  'by-invitation',
  {
    source: '05 §13.3',
    title: 'returns the group to an account with a usable invitation, without using it',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const targeted = await group.invite({ invitee: eve.account.id });
    const open = await group.invite({ max_uses: 1 });
    const mine = await resolveGroup(group, owner);
    for (const [by, { invite_id }] of [
      [eve, targeted],
      [eve, open],
      [fay, open],
    ] as const) {
      const state = await resolveGroup(group, by, invite_id);
      assertEqual(state, mine, 'the same state as for members');
    }
    const params = { group_id: group.groupId, invite_id: targeted.invite_id };
    await context.expectError(fay.caller, { method: 'group.resolve', params }, 'forbidden');
    const { invites } = await readInvites(group, owner);
    assertConforms(
      invites.every(({ uses }) => uses === 0),
      'no use is consumed',
    );
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 0, 'the number of applications');
    const events = { method: 'group.sync', params: { group_id: group.groupId } };
    await context.expectError(eve.caller, events, 'forbidden');
  },
);

resolve.check(
  'dead-invitation',
  {
    source: '05 §13.3',
    title: 'answers forbidden with an invitation that has ended, or after a ban',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    const [revoked, used, open] = [
      await group.invite(),
      await group.invite({ max_uses: 1 }),
      await group.invite(),
    ];
    const named = ({ invite_id }: { readonly invite_id: string }): JsonObject => {
      return { group_id: group.groupId, invite_id };
    };
    await context.expectOk(owner.caller, 'group.invite.revoke', named(revoked));
    await group.apply(fay, used);
    await group.approve([fay]);
    const method = 'group.resolve';
    const codes = ['forbidden'] as const;
    const unknown = { invite_id: createGroupInviteId(nodeRandom) };
    const foreign = await (await groupFixture(context)).group.invite();
    const calls = Object.entries({ revoked, used, unknown, foreign }).map(([what, invite]) => {
      return [`an invitation that is ${what}`, named(invite)] as const;
    });
    await assertAllRefused({ by: eve, method, codes }, calls);
    const malformed = [['a malformed ID', named({ invite_id: 'inv_1' })]] as const;
    await assertAllRefused({ by: eve, method, codes: ['bad_request'] }, malformed);
    await resolveGroup(group, eve, open.invite_id);
    await group.ban([eve]);
    await assertAllRefused({ by: eve, method, codes }, [['a ban', named(open)]]);
  },
);

listing.check(
  'renewed-certificate',
  { source: '05 §8.2, §12.6', title: 'an accepted application stays if its device is removed' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1, devices: 2 });
    const [eve] = strangers as [TestAccount];
    const application = await group.apply(withDevice(eve, 1), await group.invite());
    await publishDevices(context, eve, [eve.device]);
    const { applications } = await readApplications(group, owner);
    const [item] = applications;
    assertConforms(item !== undefined, 'it is still pending');
    assertEqual(item.application, application, 'the application is unchanged');
    await group.approve([eve]);
  },
);

reject.check(
  'deletes',
  { source: '05 §13.16', title: 'deletes the applications named, without event or use' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 3 });
    const [eve, fay, gus] = strangers as [TestAccount, TestAccount, TestAccount];
    const invite = await group.invite({ max_uses: 1 });
    for (const by of [eve, fay, gus]) await group.apply(by, invite);
    const params = { group_id: group.groupId, accounts: [eve.account.id, fay.account.id] };
    const call = { method: 'group.application.reject', params };
    await assertUnchanged(group, owner, () => context.expectOk(owner.caller, call.method, params));
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 1, 'one is left');
    assertEqual(
      applications[0]?.application.account,
      gus.account.id,
      'the account of the remaining application',
    );
    await context.expectError(owner.caller, call, 'not_found');
    // No use was consumed, and the rejected account may apply again.
    await group.apply(eve, invite);
    await group.approve([eve]);
  },
);

reject.check(
  'whole',
  { source: '05 §13.16', title: 'deletes none if one of them does not exist' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 2 });
    const [eve, fay] = strangers as [TestAccount, TestAccount];
    await group.apply(eve, await group.invite());
    const params = { group_id: group.groupId, accounts: [eve.account.id, fay.account.id] };
    await context.expectError(
      owner.caller,
      { method: 'group.application.reject', params },
      'not_found',
    );
    const { applications } = await readApplications(group, owner);
    assertEqual(applications.length, 1, 'it is still pending');
  },
);

reject.check('empty', { source: '05 §13.16', title: 'refuses an empty batch' }, async (context) => {
  const { group, owner } = await groupFixture(context);
  const params = { group_id: group.groupId, accounts: [] };
  await context.expectError(
    owner.caller,
    { method: 'group.application.reject', params },
    'bad_request',
  );
});

export const groupApplicationChecks = [
  ...resolve.list,
  ...submit.list,
  ...listing.list,
  ...reject.list,
];
