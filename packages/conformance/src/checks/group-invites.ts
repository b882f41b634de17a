/** Invitations: who may make, see and revoke them (05 §8.1, §13.9 to §13.12). */
import { nodeRandom } from '@posthouse/primitives-node';
import {
  canonicalJson,
  createGroupInviteId,
  type GroupInvite,
  type JsonObject,
  verifyGroupInviteResolution,
} from '@posthouse/protocol';
import { checksOf } from '../check.ts';
import { demand } from '../demand.ts';
import type { GroupActors } from '../group-actors.ts';
import { resolveGroup, withoutTrace } from '../group-reader.ts';
import { sceneOf } from '../group-scene.ts';
import type { Resident } from '../stage.ts';
import { relayLimit, relayTime } from './limits-of.ts';
import { refusesAll } from './refusals.ts';

const create = checksOf('group.invite.create');
const resolve = checksOf('group.invite.resolve');
const revoke = checksOf('group.invite.revoke');

/** The parameters that name an invitation. */
function named(group: GroupActors, { invite_id }: Pick<GroupInvite, 'invite_id'>): JsonObject {
  return { group_id: group.groupId, invite_id };
}

/** An invitation as the relay has it, verified. */
async function seen(group: GroupActors, by: Resident, invite: GroupInvite) {
  const params = { group_id: group.groupId, invite_id: invite.invite_id };
  const answer: unknown = await group.stage.succeed(by.caller, 'group.invite.resolve', params);
  verifyGroupInviteResolution(group.stage.network, answer, params);
  return answer;
}

create.check(
  'keeps',
  { source: '05 §13.9, §13.10', title: 'keeps the invitation with its certificate, unused' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    await withoutTrace(group, owner, async () => {
      const invite = await group.invite({ max_uses: 3 });
      const { invite: kept, signer_certificate, uses } = await seen(group, owner, invite);
      demand(canonicalJson(kept) === canonicalJson(invite), 'unchanged');
      demand(uses === 0, 'no use so far');
      demand(signer_certificate.account === owner.account.id, "the inviter's certificate");
    });
  },
);

create.check(
  'policy',
  { source: '05 §4.1, §6', title: 'an ordinary member may invite as the policy says' },
  async (stage) => {
    const { group, members, administrators } = await sceneOf(stage, {
      members: 1,
      administrators: 1,
    });
    const [ben, ada] = [...members, ...administrators] as [Resident, Resident];
    const targeted = { invitee: stage.account().id };
    const method = 'group.invite.create';
    const refused = (facts: JsonObject) =>
      stage.fail(ben.caller, { method, params: group.invitation(facts, ben) }, 'forbidden');
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
  { source: '05 §13.9', title: 'is forbidden in the name of somebody else' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const params = group.invitation({ inviter: owner.account.id }, ben);
    await stage.fail(ben.caller, { method: 'group.invite.create', params }, 'forbidden');
  },
);

create.check(
  'taken',
  { source: '05 §13.9', title: 'is state_conflict under an ID that is taken' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const invite = await group.invite();
    const method = 'group.invite.create';
    const calls = [
      ['the same invitation', invite],
      ['another of its ID', group.invitation({ invite_id: invite.invite_id, max_uses: 1 })],
    ] as const;
    await refusesAll({ by: owner, method, codes: ['state_conflict'] }, calls);
    const { invite: kept } = await seen(group, owner, invite);
    demand(canonicalJson(kept) === canonicalJson(invite), 'the first stays as it was');
  },
);

create.check(
  'race',
  { source: '05 §13.9', title: 'of several at once under one ID one is kept' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const invite = group.invitation();
    const call = () => owner.caller.call('group.invite.create', invite);
    const answers = await Promise.all([call(), call(), call()]);
    demand(answers.filter(({ ok }) => ok).length === 1, 'exactly one succeeds');
    demand(
      answers.every((answer) => answer.ok || answer.code === 'state_conflict'),
      'the others are state_conflict',
    );
  },
);

create.check(
  'refused-terms',
  { source: '05 §4.6, §13.9', title: 'refuses uses, targets and periods that are out of bounds' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const ttl = await relayLimit(stage, 'max_group_invite_ttl');
    const now = await relayTime(stage);
    const wrong: Readonly<Record<string, JsonObject>> = {
      'no uses': { max_uses: 0 },
      'negative uses': { max_uses: -1 },
      'uses of a targeted one': { invitee: stage.account().id, max_uses: 1 },
      'an end before its beginning': { expires_at: now - 1 },
      'an end at its beginning': { expires_at: now },
      'a life over the limit': { created_at: now, expires_at: now + ttl + 1 },
      'an end that is past': { created_at: now - 2, expires_at: now - 1 },
    };
    const calls = Object.entries(wrong).map(([what, facts]) => {
      return [what, { ...group.invitation({ created_at: now, ...facts }) }] as const;
    });
    const method = 'group.invite.create';
    await refusesAll({ by: owner, method, codes: ['bad_request'] }, calls);
    await group.invite({ created_at: now, expires_at: now + ttl });
  },
);

create.check(
  'clock',
  { source: '05 §12.4, §13.9', title: 'is clock_skew when made in another time' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const ttl = await relayLimit(stage, 'max_group_invite_ttl');
    const now = await relayTime(stage);
    const ahead = group.invitation({ created_at: now + 86_400, expires_at: now + 86_401 });
    const method = 'group.invite.create';
    await stage.fail(owner.caller, { method, params: ahead }, 'clock_skew');
    if (ttl <= 86_400) return;
    const behind = group.invitation({ created_at: now - 86_400, expires_at: now + 60 });
    await stage.fail(owner.caller, { method, params: behind }, 'clock_skew');
  },
);

create.check(
  'outlives-its-maker',
  { source: '05 §8.1', title: 'an invitation stays when its maker is demoted, or leaves' },
  async (stage) => {
    const { group, owner, administrators, strangers } = await sceneOf(stage, {
      administrators: 1,
      strangers: 2,
    });
    const [ada] = administrators as [Resident];
    const [eve, fay] = strangers as [Resident, Resident];
    const invite = await group.invite({}, ada);
    await group.setRole(ada, 'member');
    await group.apply(eve, invite);
    await group.approve([eve]);
    await group.leave(ada);
    await group.apply(fay, invite);
    await group.approve([fay]);
    const { uses } = await seen(group, owner, invite);
    demand(uses === 2, 'used twice');
  },
);

resolve.check(
  'rights',
  { source: '05 §6, §13.10', title: 'managers see all invitations, members their own' },
  async (stage) => {
    const { group, owner, members, administrators } = await sceneOf(stage, {
      members: 2,
      administrators: 1,
      facts: { invite_policy: 'members_shareable' },
    });
    const [ben, cem, ada] = [...members, ...administrators] as [Resident, Resident, Resident];
    const invite = await group.invite({}, ben);
    for (const by of [owner, ada, ben]) await seen(group, by, invite);
    const call = { method: 'group.invite.resolve', params: named(group, invite) };
    await stage.fail(cem.caller, call, 'forbidden');
    await group.setRole(cem, 'administrator');
    await seen(group, cem, invite);
  },
);

resolve.check(
  'gone',
  { source: '05 §13.10', title: 'is not_found for what is unknown, revoked or used up' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 1 });
    const [eve] = strangers as [Resident];
    const [revoked, used] = [await group.invite(), await group.invite({ max_uses: 1 })];
    await stage.succeed(owner.caller, 'group.invite.revoke', named(group, revoked));
    await group.apply(eve, used);
    await seen(group, owner, used);
    await group.approve([eve]);
    const unknown = { invite_id: createGroupInviteId(nodeRandom) };
    const calls = Object.entries({ unknown, revoked, used }).map(([what, invite]) => {
      return [`an invitation that is ${what}`, named(group, invite)] as const;
    });
    await refusesAll({ by: owner, method: 'group.invite.resolve', codes: ['not_found'] }, calls);
  },
);

revoke.check(
  'ends',
  { source: '05 §13.12, §8.2', title: 'ends the invitation and all that depends on it at once' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 2 });
    const [eve, fay] = strangers as [Resident, Resident];
    const invite = await group.invite();
    await group.apply(eve, invite);
    const method = 'group.invite.revoke';
    await withoutTrace(group, owner, () =>
      stage.succeed(owner.caller, method, named(group, invite)),
    );
    const params = { group_id: group.groupId };
    const list = await stage.succeed(owner.caller, 'group.application.list', params);
    demand((list as { applications: [] }).applications.length === 0, 'no application is listed');
    const approval = { method: 'group.application.approve', params: group.approval([eve]) };
    await stage.fail(owner.caller, approval, 'state_conflict', 'not_found');
    const application = group.application(fay, invite);
    const submit = { method: 'group.application.submit', params: application };
    await stage.fail(fay.caller, submit, 'forbidden');
    await stage.fail(owner.caller, { method, params: named(group, invite) }, 'state_conflict');
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
      await stage.fail(by.caller, { method, params: named(group, invite) }, 'forbidden');
    }
    await stage.succeed(ada.caller, method, named(group, hers));
    await stage.succeed(owner.caller, method, named(group, his));
    await stage.succeed(owner.caller, method, named(group, ours));
  },
);

revoke.check(
  'unknown',
  { source: '05 §13.12', title: 'is not_found for an invitation that is not there' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const params = named(group, { invite_id: createGroupInviteId(nodeRandom) });
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
    await stage.succeed(owner.caller, 'group.invite.revoke', named(group, invite));
    demand((await resolveGroup(group, eve)).member_count === 2, 'the member stays');
  },
);

export const groupInviteChecks = [...create.list, ...resolve.list, ...revoke.list];
