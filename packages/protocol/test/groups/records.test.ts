import { describe, expect, test } from 'vitest';
import {
  checkApplicationInvite,
  checkGroupApplication,
  checkGroupInvite,
  checkGroupInviteTimes,
  checkGroupMemberRecoveryRequest,
  encodeBase64url,
  type GroupApplication,
  type GroupInvite,
  type GroupMemberRecoveryRequest,
  groupInviteState,
  inviteAppliesTo,
  remainingInviteUses,
  verifyGroupApplication,
  verifyGroupInvite,
  verifyGroupMemberRecoveryRequest,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { alice, bob, carol, codeOf, fill, groupId, network, now, signed } from './fixture.ts';

const invite_id = `inv_${encodeBase64url(fill(1, 16))}`;
const inviteOf = (changes: JsonObject = {}) =>
  signed(alice, 'group.invite', {
    invite_id,
    group_id: groupId,
    inviter: alice.account,
    created_at: now,
    expires_at: now + 3_600,
    ...changes,
  }) as unknown as GroupInvite;
const applicationOf = (changes: JsonObject = {}) =>
  signed(bob, 'group.application', {
    account: bob.account,
    group_id: groupId,
    invite_id,
    member_encryption_public_key: bob.memberKey,
    ...changes,
  }) as unknown as GroupApplication;
const recoveryOf = (changes: JsonObject = {}) =>
  signed(bob, 'group.member.recovery', {
    account: bob.account,
    group_id: groupId,
    member_encryption_public_key: bob.memberKey,
    ...changes,
  }) as unknown as GroupMemberRecoveryRequest;

describe('05 §4.6: invitations', () => {
  const check =
    (changes: JsonObject = {}) =>
    () =>
      checkGroupInvite(network, inviteOf(changes));

  test('public with and without max_uses, targeted without', () => {
    expect(check()).not.toThrow();
    expect(check({ max_uses: 1 })).not.toThrow();
    expect(check({ invitee: bob.account })).not.toThrow();
    expect(codeOf(check({ invitee: bob.account, max_uses: 1 }))).toBe('bad_request');
  });

  test('every member has its form', () => {
    const wrong: JsonObject[] = [
      { invite_id: 'inv_x' },
      { invite_id: null },
      { group_id: 'grp_x' },
      { inviter: 'neo:860833102:N' },
      { inviter: `${alice.account.slice(0, -1)}1` },
      { invitee: `${bob.account.slice(0, -1)}1` },
      { max_uses: 0 },
      { max_uses: 1.5 },
      { created_at: '1' },
      { expires_at: now },
      { expires_at: now - 1 },
      { $context: network.context },
      { future: [null] },
    ];
    for (const changes of wrong) {
      const object = { ...inviteOf(), ...changes };
      expect(codeOf(() => checkGroupInvite(network, object))).toBe('bad_request');
    }
  });

  test('05 §13.9: the period is at most the relay’s, not over yet, and begins about now', () => {
    const rule = { now, tolerance: 60, maxTtl: 3_600 };
    const times = (created_at: number, expires_at: number) => () =>
      checkGroupInviteTimes({ created_at, expires_at }, rule);
    expect(times(now, now + 3_600)).not.toThrow();
    expect(codeOf(times(now, now + 3_601))).toBe('bad_request');
    expect(times(now - 60, now + 1)).not.toThrow();
    expect(codeOf(times(now - 60, now))).toBe('bad_request');
    expect(times(now + 60, now + 61)).not.toThrow();
    expect(codeOf(times(now + 61, now + 62))).toBe('clock_skew');
    expect(codeOf(times(now - 61, now + 1))).toBe('clock_skew');
  });

  test('05 §8.1, §18: valid until revoked, expired or used up', () => {
    const state = (stored: JsonObject, at = now, changes: JsonObject = {}) =>
      groupInviteState({ invite: inviteOf(changes), uses: 0, revoked: false, ...stored }, at);
    expect(state({})).toBe('valid');
    expect(state({}, now + 3_599)).toBe('valid');
    expect(state({}, now + 3_600)).toBe('expired');
    expect(state({ revoked: true }, now + 3_600)).toBe('revoked');
    expect(state({ uses: 1_000 })).toBe('valid');
    expect(state({ uses: 2 }, now, { max_uses: 3 })).toBe('valid');
    expect(state({ uses: 3 }, now, { max_uses: 3 })).toBe('exhausted');
    expect(state({ uses: 0 }, now, { invitee: bob.account })).toBe('valid');
    expect(state({ uses: 1 }, now, { invitee: bob.account })).toBe('exhausted');
  });

  test('05 §13.15: uses left add up for a batch', () => {
    expect(remainingInviteUses({ invite: inviteOf(), uses: 9 })).toBe(Number.POSITIVE_INFINITY);
    expect(remainingInviteUses({ invite: inviteOf({ max_uses: 3 }), uses: 1 })).toBe(2);
    expect(remainingInviteUses({ invite: inviteOf({ max_uses: 3 }), uses: 4 })).toBe(0);
  });

  test('a targeted invitation is for its account, a public one for all', () => {
    expect(inviteAppliesTo(inviteOf(), carol.account)).toBe(true);
    expect(inviteAppliesTo(inviteOf({ invitee: bob.account }), bob.account)).toBe(true);
    expect(inviteAppliesTo(inviteOf({ invitee: bob.account }), carol.account)).toBe(false);
  });

  test('05 §13.10: it verifies with the certificate of its inviter only', () => {
    const verify = (invite: unknown, by = alice) =>
      verifyGroupInvite(network, invite, by.certificate);
    expect(() => verify(inviteOf())).not.toThrow();
    expect(codeOf(() => verify(inviteOf(), bob))).toBe('bad_request');
    expect(codeOf(() => verify({ ...inviteOf(), max_uses: 9 }))).toBe('invalid_signature');
    const renamed = { ...inviteOf(), inviter: bob.account };
    expect(codeOf(() => verify(renamed, bob))).toBe('invalid_signature');
  });
});

describe('05 §4.7, §4.8: applications and recovery requests', () => {
  test('complete ones pass, with unknown members too', () => {
    expect(() => checkGroupApplication(network, applicationOf({ note: 'hi' }))).not.toThrow();
    expect(() => checkGroupMemberRecoveryRequest(network, recoveryOf())).not.toThrow();
  });

  test('each member is required and has its form', () => {
    const cases = [
      [applicationOf(), (value: unknown) => checkGroupApplication(network, value)],
      [recoveryOf(), (value: unknown) => checkGroupMemberRecoveryRequest(network, value)],
    ] as const;
    for (const [good, check] of cases) {
      for (const name of Object.keys(good)) {
        for (const value of [undefined, null, 1, 'x']) {
          expect(codeOf(() => check({ ...good, [name]: value }))).toBe('bad_request');
        }
      }
      const elsewhere = good.account.replace('860833102', '860833103');
      expect(codeOf(() => check({ ...good, account: elsewhere }))).toBe('bad_request');
      expect(codeOf(() => check({ ...good, $context: 'x' }))).toBe('bad_request');
    }
  });

  test('05 §3.6: an approver verifies certificate, account and signature before sealing', () => {
    const { certificate } = bob;
    expect(() => verifyGroupApplication(network, applicationOf(), certificate)).not.toThrow();
    expect(() =>
      verifyGroupMemberRecoveryRequest(network, recoveryOf(), certificate),
    ).not.toThrow();
    const swapped = { ...applicationOf(), member_encryption_public_key: carol.memberKey };
    expect(codeOf(() => verifyGroupApplication(network, swapped, certificate))).toBe(
      'invalid_signature',
    );
    const asCarol = carol.certificate;
    expect(codeOf(() => verifyGroupApplication(network, applicationOf(), asCarol))).toBe(
      'bad_request',
    );
    const forged = { ...certificate, account_signature: encodeBase64url(fill(0, 64)) };
    expect(codeOf(() => verifyGroupMemberRecoveryRequest(network, recoveryOf(), forged))).toBe(
      'invalid_signature',
    );
  });

  test('an unknown member called inviter does not decide whose request it is', () => {
    const object = applicationOf({ inviter: carol.account });
    expect(() => verifyGroupApplication(network, object, bob.certificate)).not.toThrow();
    expect(codeOf(() => verifyGroupApplication(network, object, carol.certificate))).toBe(
      'bad_request',
    );
  });

  test('05 §13.15: an application fits the invitation it names', () => {
    const fits = (application: GroupApplication, invite: GroupInvite) => () =>
      checkApplicationInvite(application, invite);
    expect(fits(applicationOf(), inviteOf())).not.toThrow();
    expect(fits(applicationOf(), inviteOf({ invitee: bob.account }))).not.toThrow();
    const other = `inv_${encodeBase64url(fill(2, 16))}`;
    for (const changes of [
      { invitee: carol.account },
      { invite_id: other },
      { group_id: `grp_${'A'.repeat(22)}` },
    ]) {
      expect(codeOf(fits(applicationOf(), inviteOf(changes)))).toBe('state_conflict');
    }
  });
});
