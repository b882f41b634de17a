import { describe, expect, test } from 'vitest';
import {
  checkGroupRecoveryAcceptance,
  checkGroupResolution,
  checkSchema,
  encodeBase64url,
  GroupMessageAcceptance,
  GroupRotationPreparation,
  groupStateOf,
  verifyGroupApplicationList,
  verifyGroupInviteList,
  verifyGroupInviteResolution,
  verifyGroupRecoveryList,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  alice,
  bob,
  carol,
  codeOf,
  fill,
  groupId,
  network,
  now,
  type Person,
  Story,
  signed,
} from './fixture.ts';

const otherGroup = `grp_${'A'.repeat(22)}`;
const inviteId = (byte: number) => `inv_${encodeBase64url(fill(byte, 16))}`;
const invite = (by: Person, id: number, changes: JsonObject = {}) =>
  signed(by, 'group.invite', {
    invite_id: inviteId(id),
    group_id: groupId,
    inviter: by.account,
    created_at: now,
    expires_at: now + 1,
    ...changes,
  });
const request = (by: Person) => ({
  account: by.account,
  group_id: groupId,
  member_encryption_public_key: by.memberKey,
});
const application = (by: Person, changes: JsonObject = {}) =>
  signed(by, 'group.application', { ...request(by), invite_id: inviteId(1), ...changes });
const recovery = (by: Person, changes: JsonObject = {}) =>
  signed(by, 'group.member.recovery', { ...request(by), ...changes });
const forged = (by: Person) => ({
  ...by.certificate,
  device_signature: encodeBase64url(fill(0, 64)),
});
const asked = { group_id: groupId };

describe('05 §13.3, §4.1: the state that is served', () => {
  const state = groupStateOf(new Story().group);
  const check =
    (changes: JsonObject = {}) =>
    () =>
      checkGroupResolution(network, { ...state, ...changes }, asked);

  test('one of the group asked for passes', () => {
    expect(check()).not.toThrow();
    expect(check({ status: 'closed', description: 'x', future: 1 })).not.toThrow();
    expect(check({ member_capacity: 1, member_count: 5 })).not.toThrow();
  });

  test('another group or a member out of form does not', () => {
    const wrong: JsonObject[] = [
      { group_id: otherGroup },
      { name: ' ' },
      { name: 'a'.repeat(257) },
      { description: ' ' },
      { description: null },
      { status: 'paused' },
      { owner: 'neo:860833102:N' },
      { owner: `${alice.account.slice(0, -1)}1` },
      { member_capacity: 0 },
      { member_count: 0 },
      { invite_policy: 'all' },
      { $context: 'x' },
    ];
    for (const changes of wrong) expect(codeOf(check(changes))).toBe('bad_request');
    expect(codeOf(() => checkGroupResolution(network, null, asked))).toBe('bad_request');
  });
});

describe('05 §13.10: one invitation', () => {
  const good = { invite: invite(alice, 1), signer_certificate: alice.certificate, uses: 0 };
  const verify = (changes: JsonObject, ids = { ...asked, invite_id: inviteId(1) }) =>
    codeOf(() => verifyGroupInviteResolution(network, { ...good, ...changes }, ids));

  test('it verifies with its signer_certificate and is the requested one', () => {
    const ids = { ...asked, invite_id: inviteId(1) };
    expect(() => verifyGroupInviteResolution(network, good, ids)).not.toThrow();
    expect(verify({}, { ...ids, invite_id: inviteId(2) })).toBe('bad_request');
    expect(verify({}, { ...ids, group_id: otherGroup })).toBe('bad_request');
    expect(verify({ signer_certificate: bob.certificate })).toBe('bad_request');
    expect(verify({ signer_certificate: forged(alice) })).toBe('invalid_signature');
    expect(verify({ uses: -1 })).toBe('bad_request');
    expect(verify({ invite: { ...good.invite, max_uses: 4 } })).toBe('invalid_signature');
  });
});

describe('05 §13.11: a list of invitations', () => {
  const item = (by: Person, id: number) => ({
    invite: invite(by, id),
    signer_device_id: by.deviceId,
    uses: 0,
  });
  const good = {
    invites: [item(alice, 1), item(bob, 2), item(alice, 3)],
    certificates: [bob.certificate, alice.certificate],
    next: 'more',
  };
  const verify = (changes: JsonObject, limit?: number) =>
    codeOf(() =>
      verifyGroupInviteList(
        network,
        { ...good, ...changes },
        { ...asked, ...(limit !== undefined && { limit }) },
      ),
    );

  test('every certificate and every invitation verifies', () => {
    expect(() => verifyGroupInviteList(network, good, { ...asked, limit: 3 })).not.toThrow();
    const empty = { invites: [], certificates: [carol.certificate] };
    expect(() => verifyGroupInviteList(network, empty, asked)).not.toThrow();
    const broken = { ...item(bob, 2), invite: { ...invite(bob, 2), expires_at: now + 2 } };
    expect(verify({ invites: [broken] })).toBe('invalid_signature');
    expect(verify({ certificates: [forged(bob), alice.certificate] })).toBe('invalid_signature');
  });

  test('references are covered by distinct certificates of the inviter', () => {
    expect(verify({ certificates: [alice.certificate] })).toBe('bad_request');
    const twice = [alice.certificate, bob.certificate, alice.certificate];
    expect(verify({ certificates: twice })).toBe('bad_request');
    const swapped = { ...item(alice, 1), signer_device_id: bob.deviceId };
    expect(verify({ invites: [swapped] })).toBe('bad_request');
  });

  test('only invitations of this group, no more than requested, no cursor on an empty page', () => {
    const foreign = { ...item(alice, 1), invite: invite(alice, 1, { group_id: otherGroup }) };
    expect(verify({ invites: [foreign] })).toBe('bad_request');
    expect(verify({}, 2)).toBe('bad_request');
    expect(verify({ invites: [] })).toBe('bad_request');
    expect(verify({ next: '' })).toBe('bad_request');
    expect(verify({ next: null })).toBe('bad_request');
    expect(verify({ invites: [{ ...item(alice, 1), $context: 'x' }] })).toBe('bad_request');
  });
});

describe('05 §13.14, §13.22: lists of applications and recovery requests', () => {
  const times = { accepted_at: now, expires_at: now + 9 };
  const lists = [
    {
      name: 'applications',
      verify: verifyGroupApplicationList,
      item: (by: Person, changes: JsonObject = {}) => ({
        application: application(by, changes),
        signer_certificate: by.certificate,
        accepted_at: now,
      }),
    },
    {
      name: 'requests',
      verify: verifyGroupRecoveryList,
      item: (by: Person, changes: JsonObject = {}) => ({
        request: recovery(by, changes),
        signer_certificate: by.certificate,
        ...times,
      }),
    },
  ] as const;

  test.each(lists)('$name: each verifies with its own certificate', ({ name, verify, item }) => {
    const list = (records: JsonObject[], more: JsonObject = {}) => ({ [name]: records, ...more });
    const good = list([item(bob), item(carol)], { next: 'x' });
    expect(() => verify(network, good, { ...asked, limit: 2 })).not.toThrow();
    expect(() => verify(network, list([]), asked)).not.toThrow();
    const code = (value: unknown, limit = 9) =>
      codeOf(() => verify(network, value, { ...asked, limit }));
    expect(code(list([{ ...item(bob), signer_certificate: carol.certificate }]))).toBe(
      'bad_request',
    );
    expect(code(list([{ ...item(bob), signer_certificate: forged(bob) }]))).toBe(
      'invalid_signature',
    );
    expect(code(list([item(bob, { account: carol.account })]))).toBe('bad_request');
    expect(code(list([item(bob, { group_id: otherGroup })]))).toBe('bad_request');
    expect(code(list([{ ...item(bob), accepted_at: null }]))).toBe('bad_request');
    expect(code(good, 1)).toBe('bad_request');
    expect(code(list([], { next: 'x' }))).toBe('bad_request');
  });

  test('05 §13.21: a request expires after it was accepted', () => {
    expect(() => checkGroupRecoveryAcceptance(times)).not.toThrow();
    const never = { accepted_at: now, expires_at: now };
    expect(codeOf(() => checkGroupRecoveryAcceptance(never))).toBe('bad_request');
    const records = [{ request: recovery(bob), signer_certificate: bob.certificate, ...never }];
    expect(codeOf(() => verifyGroupRecoveryList(network, { requests: records }, asked))).toBe(
      'bad_request',
    );
  });
});

test('05 §13.26, §13.28: a preparation counts from 0, a message comes after the creation', () => {
  expect(() => checkSchema(GroupRotationPreparation, { prepared: 1, expires_at: 5 })).not.toThrow();
  expect(() => checkSchema(GroupRotationPreparation, { prepared: -1, expires_at: 5 })).toThrow();
  expect(() => checkSchema(GroupMessageAcceptance, { sequence: 1 })).not.toThrow();
  expect(() => checkSchema(GroupMessageAcceptance, { sequence: 0 })).toThrow();
});
