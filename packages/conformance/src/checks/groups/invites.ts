/** Creating and reading invitations (05 §8.1, §13.9, §13.10). */

import {
  createGroupInviteId,
  type GroupInvite,
  verifyGroupInviteResolution,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayLimit, relayTime } from '../../fixtures/relay-info.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { readInvites } from '../../groups/group-lists.ts';
import { namedInvite } from '../../groups/group-objects.ts';
import { assertUnchanged } from '../../groups/group-reader.ts';
import type { TestGroup } from '../../groups/test-group.ts';

const create = checksOf('group.invite.create');
const resolve = checksOf('group.invite.resolve');
const listing = checksOf('group.invite.list');

/** Reads and verifies an invitation. */
async function readInvite(group: TestGroup, by: TestAccount, invite: GroupInvite) {
  const params = { group_id: group.groupId, invite_id: invite.invite_id };
  const answer: unknown = await group.context.expectOk(by.caller, 'group.invite.resolve', params);
  verifyGroupInviteResolution(group.context.network, answer, params);
  return answer;
}

create.check(
  'keeps',
  { source: '05 §13.9, §13.10', title: 'stores the invitation with its certificate, unused' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await assertUnchanged(group, owner, async () => {
      const invite = await group.invite({ max_uses: 3 });
      const { invite: stored, signer_certificate, uses } = await readInvite(group, owner, invite);
      assertEqual(stored, invite, 'the invitation is unchanged');
      assertEqual(uses, 0, 'the number of uses');
      assertEqual(signer_certificate.account, owner.account.id, "the inviter's certificate");
    });
  },
);

create.check(
  'policy',
  { source: '05 §4.1, §6', title: 'an ordinary member may invite as the policy permits' },
  async (context) => {
    const { group, members, administrators } = await groupFixture(context, {
      members: 1,
      administrators: 1,
    });
    const [ben, ada] = [...members, ...administrators] as [TestAccount, TestAccount];
    const targeted = { invitee: context.account().id };
    const method = 'group.invite.create';
    const refused = (overrides: JsonObject) =>
      context.expectError(
        ben.caller,
        { method, params: group.invitation(overrides, ben) },
        'forbidden',
      );
    await refused({});
    await refused(targeted);
    await group.invite({}, ada);
    await group.invite(targeted, ada);
    await group.update({ invite_policy: 'members_targeted' });
    await refused({});
    await group.invite(targeted, ben);
    await group.update({ invite_policy: 'members_shareable' });
    await group.invite({}, ben);
    await group.invite({ max_uses: 2 }, ben);
    await group.invite(targeted, ben);
  },
);

create.check(
  'another-inviter',
  { source: '05 §13.9', title: 'answers forbidden in the name of another account' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const params = group.invitation({ inviter: owner.account.id }, ben);
    await context.expectError(ben.caller, { method: 'group.invite.create', params }, 'forbidden');
  },
);

create.check(
  'taken',
  { source: '05 §13.9', title: 'answers state_conflict to an existing ID' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const invite = await group.invite();
    const method = 'group.invite.create';
    const calls = [
      ['the same invitation', invite],
      ['another with its ID', group.invitation({ invite_id: invite.invite_id, max_uses: 1 })],
    ] as const;
    await assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, calls);
    const { invite: stored } = await readInvite(group, owner, invite);
    assertEqual(stored, invite, 'the first invitation is unchanged');
  },
);

create.check(
  'race',
  { source: '05 §13.9', title: 'stores one of several concurrent invitations with one ID' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const invite = group.invitation();
    const call = () => owner.caller.call('group.invite.create', invite);
    const answers = await Promise.all([call(), call(), call()]);
    assertEqual(answers.filter(({ ok }) => ok).length, 1, 'exactly one succeeds');
    assertConforms(
      answers.every((answer) => answer.ok || answer.code === 'state_conflict'),
      'the others are state_conflict',
    );
  },
);

create.check(
  'refused-terms',
  { source: '05 §4.6, §13.9', title: 'refuses invalid uses, targets and periods' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const ttl = await relayLimit(context, 'max_group_invite_ttl');
    const now = await relayTime(context);
    const wrong: Readonly<Record<string, JsonObject>> = {
      'no uses': { max_uses: 0 },
      'negative uses': { max_uses: -1 },
      'uses of a targeted one': { invitee: context.account().id, max_uses: 1 },
      'an end before its beginning': { expires_at: now - 1 },
      'an end at its beginning': { expires_at: now },
      'a life over the limit': { created_at: now, expires_at: now + ttl + 1 },
      'an end that is past': { created_at: now - 2, expires_at: now - 1 },
    };
    const calls = Object.entries(wrong).map(([what, overrides]) => {
      return [what, { ...group.invitation({ created_at: now, ...overrides }) }] as const;
    });
    const method = 'group.invite.create';
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
    await group.invite({ created_at: now, expires_at: now + ttl });
  },
);

create.check(
  'clock',
  {
    source: '05 §12.4, §13.9',
    title: 'answers clock_skew if the time of the invitation is far off',
  },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const ttl = await relayLimit(context, 'max_group_invite_ttl');
    const now = await relayTime(context);
    const ahead = group.invitation({ created_at: now + 86_400, expires_at: now + 86_401 });
    const method = 'group.invite.create';
    await context.expectError(owner.caller, { method, params: ahead }, 'clock_skew');
    if (ttl <= 86_400) return;
    const late = group.invitation({ created_at: now - 86_400, expires_at: now + 60 });
    await context.expectError(owner.caller, { method, params: late }, 'clock_skew');
  },
);

create.check(
  'outlives-its-maker',
  {
    source: '05 §8.1',
    title: 'an invitation stays valid if its inviter loses the right to invite',
  },
  async (context) => {
    const { group, owner, administrators, members, strangers } = await groupFixture(context, {
      administrators: 1,
      members: 1,
      strangers: 3,
      overrides: { invite_policy: 'members_shareable' },
    });
    const [ada, ben] = [...administrators, ...members] as [TestAccount, TestAccount];
    const [eve, fay, gus] = strangers as [TestAccount, TestAccount, TestAccount];
    const [invite, his] = [await group.invite({}, ada), await group.invite({}, ben)];
    await group.update({ invite_policy: 'administrators' });
    await group.apply(gus, his);
    await group.approve([gus]);
    await group.setRole(ada, 'member');
    await group.apply(eve, invite);
    await group.approve([eve]);
    await group.leave(ada);
    await group.apply(fay, invite);
    await group.approve([fay]);
    const { uses } = await readInvite(group, owner, invite);
    assertEqual(uses, 2, 'used twice');
  },
);

resolve.check(
  'rights',
  { source: '05 §6, §13.10', title: 'managers may read all invitations, members their own' },
  async (context) => {
    const { group, owner, members, administrators } = await groupFixture(context, {
      members: 2,
      administrators: 1,
      overrides: { invite_policy: 'members_shareable' },
    });
    const [ben, cem, ada] = [...members, ...administrators] as [
      TestAccount,
      TestAccount,
      TestAccount,
    ];
    const invite = await group.invite({}, ben);
    for (const by of [owner, ada, ben]) await readInvite(group, by, invite);
    const call = { method: 'group.invite.resolve', params: namedInvite(group, invite) };
    await context.expectError(cem.caller, call, 'forbidden');
    await group.setRole(cem, 'administrator');
    await readInvite(group, cem, invite);
  },
);

resolve.check(
  'gone',
  { source: '05 §13.10', title: 'answers not_found for an unknown, revoked or used invitation' },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const [eve] = strangers as [TestAccount];
    const [revoked, used] = [await group.invite(), await group.invite({ max_uses: 1 })];
    await context.expectOk(owner.caller, 'group.invite.revoke', namedInvite(group, revoked));
    await group.apply(eve, used);
    await readInvite(group, owner, used);
    await group.approve([eve]);
    const unknown = { invite_id: createGroupInviteId(nodeRandom) };
    const foreign = await (await groupFixture(context)).group.invite();
    const calls = Object.entries({ unknown, revoked, used, foreign }).map(([what, invite]) => {
      return [`an invitation that is ${what}`, namedInvite(group, invite)] as const;
    });
    await assertAllRefused(
      { by: owner, method: 'group.invite.resolve', codes: ['not_found'] },
      calls,
    );
  },
);

listing.check(
  'scope',
  {
    source: '05 §6, §13.11',
    title: 'lists all valid invitations for managers, and the own ones for members',
  },
  async (context) => {
    const { group, owner, members, administrators, strangers } = await groupFixture(context, {
      members: 2,
      administrators: 1,
      strangers: 1,
      devices: 2,
      overrides: { invite_policy: 'members_shareable' },
    });
    const [ben, cem, ada] = [...members, ...administrators] as [
      TestAccount,
      TestAccount,
      TestAccount,
    ];
    const [eve] = strangers as [TestAccount];
    const [revoked, used] = [await group.invite({}, ben), await group.invite({ max_uses: 1 }, ben)];
    await context.expectOk(ben.caller, 'group.invite.revoke', namedInvite(group, revoked));
    await group.apply(eve, used);
    await group.approve([eve]);
    const [first] = (await readInvites(group, owner)).invites;
    const ours = (first as NonNullable<typeof first>).invite;
    const [hers, his] = [await group.invite({}, ada), await group.invite({}, withDevice(ben, 1))];
    for (const [by, visible] of [
      [owner, [ours, hers, his]],
      [ada, [ours, hers, his]],
      [ben, [his]],
      [cem, []],
    ] as const) {
      const { invites } = await readInvites(group, by);
      const seenBy = invites.map(({ invite }) => invite.invite_id).sort();
      const expected = visible.map(({ invite_id }) => invite_id).sort();
      assertEqual(seenBy.join(), expected.join(), 'the listed invitations');
    }
  },
);

export const groupInviteChecks = [...create.list, ...resolve.list, ...listing.list];
