import {
  type GroupInvite,
  limits,
  signAsDevice,
  verifyGroupInviteResolution,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../../src/limits.ts';
import { type By, TestGroup } from '../../fixtures/group.ts';
import { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const cem = relay.person('cem');
const dan = relay.person('dan');
let group: TestGroup;

/** Ann owns the group, Ben administers it, Cem is a member; Dan is not. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben, cem);
  await group.setRole(ben, 'administrator');
  relay.takeNotices();
});

const call = (method: string, params: unknown, person: Person) =>
  relay.call(`group.invite.${method}`, params, { session: person.session() });
const codeOf = (method: string, params: unknown, person: Person) =>
  relay.codeOf(`group.invite.${method}`, params, { session: person.session() });
const create = (facts: Partial<GroupInvite> = {}, by: By = {}) =>
  codeOf('create', group.invitation(facts, by), by.by ?? ann);
const of = ({ invite_id }: { readonly invite_id: string }) => ({
  group_id: group.groupId,
  invite_id,
});
const stored = async () => (await relay.rows('group_invites')) as Record<string, unknown>[];

describe('05 §13.9: creating an invitation', () => {
  test('stores it unchanged with its certificate, and publishes no notice', async () => {
    const before = await relay.dump();
    const invite = await group.invite({ max_uses: 3, extra: { deep: 'é' } } as object);
    expect(relay.takeNotices()).toEqual([]);
    const after = await relay.dump();
    const changed = Object.keys(after).filter(
      (table) => canonicalJson(after[table] as never) !== canonicalJson(before[table] as never),
    );
    expect(changed).toEqual(['group_invites']);
    const answer = await call('resolve', of(invite), ben);
    expect(answer).toEqual({
      invite,
      signer_certificate: ann.device().certificate,
      uses: 0,
    });
    verifyGroupInviteResolution(network, answer, of(invite));
  });

  test.each([
    ['administrators', 'owner', 'ok', 'ok'],
    ['administrators', 'administrator', 'ok', 'ok'],
    ['administrators', 'member', 'forbidden', 'forbidden'],
    ['members_targeted', 'administrator', 'ok', 'ok'],
    ['members_targeted', 'member', 'ok', 'forbidden'],
    ['members_shareable', 'member', 'ok', 'ok'],
  ] as const)('05 §4.1, §6: under %s the %s may (targeted: %s, %s: public)', async (...row) => {
    const [invite_policy, role, targeted, open] = row;
    await group.update({ invite_policy });
    const by = { by: { owner: ann, administrator: ben, member: cem }[role] };
    expect(await create({ invitee: dan.account }, by)).toBe(targeted);
    expect(await create({}, by)).toBe(open);
  });

  test('05 §8.1: it stays valid whatever changes in role, policy or membership', async () => {
    await group.update({ invite_policy: 'members_shareable' });
    const ofBen = await group.invite({}, { by: ben });
    const ofCem = await group.invite({}, { by: cem });
    await group.update({ invite_policy: 'administrators' });
    await group.setRole(ben, 'member');
    await group.leave(cem);
    const apply = (invite: GroupInvite) => {
      const application = group.application(dan, invite);
      return relay.codeOf('group.application.submit', application, { session: dan.session() });
    };
    expect(await apply(ofBen)).toBe('ok');
    expect(await apply(ofCem)).toBe('ok');
    await group.approve([dan]);
    expect(group.members).toContain(dan);
  });

  test.each([
    ['an ID that is none', { invite_id: 'inv_short' }],
    ['another $type', { $type: network.type('group.application') }],
    ['an invitee of another network', { invitee: 'neo:1:NXV7ZhHiyM1aHXwpVsRZC6BwNFP2jghXAq' }],
    ['uses of a targeted one', { invitee: 'dan', max_uses: 1 }],
    ['no uses', { max_uses: 0 }],
    ['uses that are no integer', { max_uses: 1.5 }],
    ['a time that is a text', { expires_at: '1' }],
    ['null', { max_uses: null }],
    ['null deep in an unknown member', { extra: [null] }],
    ['a $context', { $context: 'x' }],
  ])('%s is refused as bad_request', async (_, facts) => {
    const named = 'invitee' in facts && facts.invitee === 'dan' ? { invitee: dan.account } : {};
    const invite = { ...group.invitation(), ...facts, ...named };
    expect(await codeOf('create', invite, ann)).toBe('bad_request');
    expect(await stored()).toHaveLength(1);
  });

  test.each([
    ['the longest life', 0, 'ok'],
    ['a second more', 1, 'bad_request'],
  ])('05 §4.6: %s allowed by max_group_invite_ttl', async (_, more, code) => {
    const created_at = relay.clock.now();
    const expires_at = created_at + defaultLimits.groupInviteTtl + more;
    expect(await create({ created_at, expires_at })).toBe(code);
  });

  test.each([
    ['created and over at once', 0, 0, 'bad_request'],
    ['over this very second', -10, 0, 'bad_request'],
    ['over in a second', -10, 1, 'ok'],
  ])('05 §13.9: %s', async (_, created, expires, code) => {
    const now = relay.clock.now();
    expect(await create({ created_at: now + created, expires_at: now + expires })).toBe(code);
  });

  test.each([
    ['as far back as the tolerance', -defaultLimits.authClockTolerance, 'ok'],
    ['further back', -defaultLimits.authClockTolerance - 1, 'clock_skew'],
    ['as far ahead as the tolerance', defaultLimits.authClockTolerance, 'ok'],
    ['further ahead', defaultLimits.authClockTolerance + 1, 'clock_skew'],
  ])('05 §12.4: created %s', async (_, offset, code) => {
    const created_at = relay.clock.now() + offset;
    expect(await create({ created_at, expires_at: created_at + 1_000 })).toBe(code);
  });

  test('05 §8.1: an accepted period outlasts a lowered max_group_invite_ttl', async () => {
    const invite = await group.invite();
    await relay.restart({ groupInviteTtl: 60 });
    expect(await create()).toBe('bad_request');
    expect(await call('resolve', of(invite), ann)).toMatchObject({ invite });
  });

  test('in the name of another account it is forbidden, before its signature is verified', async () => {
    const invite = group.invitation({ inviter: ben.account });
    expect(await codeOf('create', invite, ann)).toBe('forbidden');
    expect(await codeOf('create', { ...invite, extra: 1 }, ann)).toBe('forbidden');
  });

  test('changed after signing, or signed by another device of the account, it is refused', async () => {
    const invite = group.invitation();
    expect(await codeOf('create', { ...invite, max_uses: 2 }, ann)).toBe('invalid_signature');
    const other = group.invitation({}, { device: 'laptop' });
    expect(await codeOf('create', other, ann)).toBe('invalid_signature');
  });

  test('strangers, banned accounts and account sessions are refused, whatever the policy', async () => {
    await group.update({ invite_policy: 'members_shareable' });
    expect(await create({}, { by: dan })).toBe('forbidden');
    await group.ban([cem]);
    expect(await create({}, { by: cem })).toBe('forbidden');
    const session = ann.accountSession();
    const code = await relay.codeOf('group.invite.create', group.invitation(), { session });
    expect(code).toBe('forbidden');
  });

  test('for an unknown group it is not_found, for a closed one state_conflict', async () => {
    expect(await create({ group_id: `grp_${'A'.repeat(22)}` })).toBe('not_found');
    await group.close();
    expect(await create()).toBe('state_conflict');
    expect(await create({}, { by: cem })).toBe('forbidden');
  });

  test('an ID that is taken in the group is state_conflict, also for an identical retry', async () => {
    const invite = await group.invite();
    expect(await codeOf('create', invite, ann)).toBe('state_conflict');
    expect(await create({ invite_id: invite.invite_id }, { by: ben })).toBe('state_conflict');
    await call('revoke', of(invite), ann);
    expect(await codeOf('create', invite, ann)).toBe('state_conflict');
    const elsewhere = await TestGroup.create(relay, ann);
    await elsewhere.invite({ invite_id: invite.invite_id });
  });

  test('05 §18: of two concurrent creations of one ID one is accepted', async () => {
    const { invite_id } = group.invitation();
    const codes = [create({ invite_id }), create({ invite_id, max_uses: 1 }, { by: ben })];
    expect((await Promise.all(codes)).sort()).toEqual(['ok', 'state_conflict']);
  });

  test("05 §20: an account's valid invitations are limited; ended ones do not count", async () => {
    await relay.restart({ groupInvites: 4 });
    const revoked = await group.invite();
    await group.invite({ expires_at: relay.clock.now() + 10 });
    await group.invite({ invitee: dan.account });
    expect(await create()).toBe('rate_limited');
    expect(await create({}, { by: ben })).toBe('ok');
    await call('revoke', of(revoked), ann);
    expect([await create(), await create()]).toEqual(['ok', 'rate_limited']);
    relay.clock.advance(10);
    expect([await create(), await create()]).toEqual(['ok', 'rate_limited']);
    const [targeted] = (await stored()).filter(({ invitee }) => invitee === dan.account);
    await group.apply(dan, targeted as never);
    await group.approve([dan]);
    expect([await create(), await create()]).toEqual(['ok', 'rate_limited']);
  });

  test.each([
    ['as large as a write may be', 0, 'ok'],
    ['one byte larger', 1, 'request_too_large'],
  ])('05 §12.2: an invitation %s', async (_, more, code) => {
    const bytes = Buffer.byteLength(canonicalJson(group.invitation({ extra: '' } as object)));
    const extra = 'x'.repeat(limits.groupWriteBytes - bytes + more);
    expect(await create({ extra } as object)).toBe(code);
  });

  test('05 §12.6: a right lost while the signature is verified is missing', async () => {
    const invite = group.invitation({}, { by: ben });
    relay.meanwhile = () => group.setRole(ben, 'member');
    expect(await codeOf('create', invite, ben)).toBe('forbidden');
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    const laptop = { by: ann, device: 'laptop' };
    const invite = group.invitation({}, laptop);
    const faults = await throughEveryFault(relay, () =>
      relay.codeOf('group.invite.create', invite, { session: ann.session('laptop') }),
    );
    expect(faults).toBe(2);
  });
});

describe('05 §13.10: resolving an invitation', () => {
  test('owner and administrators see all, ordinary members their own', async () => {
    await group.update({ invite_policy: 'members_shareable' });
    const ofAnn = await group.invite();
    const ofCem = await group.invite({}, { by: cem });
    expect(await codeOf('resolve', of(ofCem), ann)).toBe('ok');
    expect(await codeOf('resolve', of(ofCem), ben)).toBe('ok');
    expect(await codeOf('resolve', of(ofCem), cem)).toBe('ok');
    expect(await codeOf('resolve', of(ofAnn), cem)).toBe('forbidden');
    // Not whether it is still valid either.
    await call('revoke', of(ofAnn), ann);
    expect(await codeOf('resolve', of(ofAnn), cem)).toBe('forbidden');
  });

  test('counts the uses; an exhausted, expired or revoked invitation is not_found', async () => {
    const used = await group.invite({ max_uses: 2 });
    await group.apply(dan, used);
    await group.approve([dan]);
    expect(await call('resolve', of(used), ann)).toMatchObject({ uses: 1 });
    const eve = await Person.register(relay, 'eve');
    await group.apply(eve, used);
    await group.approve([eve]);
    expect(await codeOf('resolve', of(used), ann)).toBe('not_found');

    const over = await group.invite({ expires_at: relay.clock.now() + 60 });
    relay.clock.advance(59);
    expect(await codeOf('resolve', of(over), ann)).toBe('ok');
    relay.clock.advance(1);
    expect(await codeOf('resolve', of(over), ann)).toBe('not_found');

    const revoked = await group.invite();
    await call('revoke', of(revoked), ann);
    expect(await codeOf('resolve', of(revoked), ann)).toBe('not_found');
  });

  test('strangers and banned accounts get the same refusal, whether it exists or not', async () => {
    const invite = await group.invite({ invitee: dan.account });
    const none = group.invitation();
    await group.ban([cem]);
    for (const person of [dan, cem]) {
      expect(await codeOf('resolve', of(invite), person)).toBe('forbidden');
      expect(await codeOf('resolve', of(none), person)).toBe('forbidden');
    }
  });

  test('an unknown ID is not_found, a malformed one bad_request', async () => {
    const invite = await group.invite();
    const group_id = `grp_${'A'.repeat(22)}`;
    expect(await codeOf('resolve', { ...of(invite), group_id }, ann)).toBe('not_found');
    expect(await codeOf('resolve', of(group.invitation()), cem)).toBe('not_found');
    expect(await codeOf('resolve', { group_id: group.groupId }, ann)).toBe('bad_request');
    expect(await codeOf('resolve', of({ invite_id: 'inv_' }), ann)).toBe('bad_request');
  });

  test('verifies with the certificate of its acceptance, renewed and removed since', async () => {
    const invite = await group.invite({}, { device: 'laptop' });
    const { certificate } = ann.device('laptop');
    await ann.addDevice('laptop', { expiresAt: relay.clock.now() + 90_000 });
    await ann.publishState();
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    expect(await call('resolve', of(invite), ben)).toMatchObject({
      signer_certificate: certificate,
    });
  });
});

describe('05 §13.12: revoking an invitation', () => {
  test('ends it for good, without a notice if no account applied', async () => {
    const invite = await group.invite();
    await call('revoke', of(invite), ann);
    expect(relay.takeNotices()).toEqual([]);
    expect(await codeOf('resolve', of(invite), ann)).toBe('not_found');
    const application = group.application(dan, invite);
    const session = dan.session();
    expect(await relay.codeOf('group.application.submit', application, { session })).toBe(
      'forbidden',
    );
    expect(await relay.codeOf('group.resolve', of(invite), { session })).toBe('forbidden');
  });

  test('05 §15.3: notifies owner and administrators if an application ends with it', async () => {
    const invite = await group.invite();
    await group.apply(dan, invite);
    relay.takeNotices();
    await call('revoke', of(invite), ann);
    expect(relay.takeNotices()).toEqual([
      {
        kind: 'group-applications',
        group: group.groupId,
        accounts: [ann.account, ben.account].sort(),
      },
    ]);
    const list = await relay.call(
      'group.application.list',
      { group_id: group.groupId },
      {
        session: ann.session(),
      },
    );
    expect(list).toEqual({ applications: [] });
    const approval = group.approval([dan]);
    expect(
      await relay.codeOf('group.application.approve', approval, { session: ann.session() }),
    ).toBe('state_conflict');
  });

  test('05 §8.2: an application that was replaced or rejected before does not count', async () => {
    const [first, second] = [await group.invite(), await group.invite()];
    await group.apply(dan, first);
    await group.apply(dan, second);
    relay.takeNotices();
    await call('revoke', of(first), ann);
    expect(relay.takeNotices()).toEqual([]);
    const rejection = { group_id: group.groupId, accounts: [dan.account] };
    await relay.call('group.application.reject', rejection, { session: ann.session() });
    relay.takeNotices();
    await call('revoke', of(second), ann);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('05 §6: the owner may revoke any invitation, other members only their own', async () => {
    await group.update({ invite_policy: 'members_shareable' });
    const [ofAnn, ofBen, ofCem] = [
      await group.invite(),
      await group.invite({}, { by: ben }),
      await group.invite({}, { by: cem }),
    ];
    expect(await codeOf('revoke', of(ofAnn), ben)).toBe('forbidden');
    expect(await codeOf('revoke', of(ofCem), ben)).toBe('forbidden');
    expect(await codeOf('revoke', of(ofAnn), cem)).toBe('forbidden');
    // The right was lost to invite, not to take back.
    await group.update({ invite_policy: 'administrators' });
    expect(await codeOf('revoke', of(ofCem), cem)).toBe('ok');
    expect(await codeOf('revoke', of(ofBen), ann)).toBe('ok');
  });

  test('a second revocation is state_conflict; without the right still forbidden', async () => {
    const invite = await group.invite();
    await call('revoke', of(invite), ann);
    expect(await codeOf('revoke', of(invite), ann)).toBe('state_conflict');
    expect(await codeOf('revoke', of(invite), ben)).toBe('forbidden');
    relay.clock.advance(90_000);
    expect(await codeOf('revoke', of(invite), ann)).toBe('state_conflict');
  });

  test('05 §20: revoking an expired or exhausted invitation is not_found', async () => {
    const targeted = await group.invite({ invitee: dan.account });
    await group.apply(dan, targeted);
    await group.approve([dan]);
    expect(await codeOf('revoke', of(targeted), ann)).toBe('not_found');
    const over = await group.invite({ expires_at: relay.clock.now() + 1 });
    relay.clock.advance(1);
    expect(await codeOf('revoke', of(over), ann)).toBe('not_found');
    expect(await codeOf('revoke', of(over), cem)).toBe('forbidden');
  });

  test('strangers and banned accounts are refused, unknown IDs are not_found', async () => {
    const invite = await group.invite();
    await group.ban([cem]);
    expect(await codeOf('revoke', of(invite), dan)).toBe('forbidden');
    expect(await codeOf('revoke', of(group.invitation()), dan)).toBe('forbidden');
    expect(await codeOf('revoke', of(invite), cem)).toBe('forbidden');
    expect(await codeOf('revoke', of(group.invitation()), ann)).toBe('not_found');
    const group_id = `grp_${'A'.repeat(22)}`;
    expect(await codeOf('revoke', { ...of(invite), group_id }, ann)).toBe('not_found');
    expect(await codeOf('revoke', of({ invite_id: 'x' }), ann)).toBe('bad_request');
  });

  test('05 §12.5: in a closed group no invitation can be revoked', async () => {
    const invite = await group.invite();
    await group.close();
    expect(await codeOf('revoke', of(invite), ann)).toBe('state_conflict');
    expect(await codeOf('revoke', of(group.invitation()), ann)).toBe('state_conflict');
    expect(await codeOf('revoke', of(invite), ben)).toBe('forbidden');
  });

  test('members and consumed uses stay as they are', async () => {
    const invite = await group.invite();
    await group.apply(dan, invite);
    await group.approve([dan]);
    await call('revoke', of(invite), ann);
    const params = { group_id: group.groupId };
    expect(await relay.codeOf('group.sync', params, { session: dan.session() })).toBe('ok');
    expect(await stored()).toContainEqual(
      expect.objectContaining({ invite_id: invite.invite_id, uses: 1, revoked: 1 }),
    );
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    const invite = await group.invite();
    await group.apply(dan, invite);
    const faults = await throughEveryFault(relay, () => codeOf('revoke', of(invite), ann));
    expect(faults).toBe(1);
  });
});

test('01 §8: an invitation signed by a key of no device of the account is refused', async () => {
  const invite = signAsDevice(network, group.invitation(), dan.device().signer);
  expect(await codeOf('create', invite, ann)).toBe('invalid_signature');
});
