import { describe, expect, test } from 'vitest';
import { verifySignatures } from '../../src/crypto/index.ts';
import { groupChainKinds, isGroupChainKind } from '../../src/groups/bodies.ts';
import {
  checkGroupBody,
  deviceSignatures,
  deviceSigningInput,
  type GroupChainKind,
  managementHash,
  signAsDevice,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  alice,
  bob,
  carol,
  codeOf,
  creationBody,
  groupId,
  memberOf,
  network,
  signed,
} from './fixture.ts';

const head = `sha256:${'A'.repeat(43)}`;
const linked = { group_id: groupId, prev_hash: head };

const good: Readonly<Record<GroupChainKind, JsonObject>> = {
  'group.create': creationBody(),
  'group.update': signed(alice, 'group.update', { ...linked, name: 'New' }),
  'group.role.update': signed(alice, 'group.role.update', {
    ...linked,
    account: bob.account,
    role: 'administrator',
  }),
  'group.owner.transfer': signed(alice, 'group.owner.transfer', {
    ...linked,
    new_owner_account: bob.account,
  }),
  'group.close': signed(alice, 'group.close', linked),
  'group.application.approval': signed(alice, 'group.application.approval', {
    ...linked,
    members: [memberOf(bob), memberOf(carol)],
  }),
  'group.member.leave': signed(bob, 'group.member.leave', { ...linked, account: bob.account }),
  'group.member.removal': signed(alice, 'group.member.removal', {
    ...linked,
    accounts: [bob.account],
  }),
  'group.member.recovery.approval': signed(alice, 'group.member.recovery.approval', {
    ...linked,
    members: [memberOf(bob)],
  }),
  'group.member.ban': signed(alice, 'group.member.ban', { ...linked, accounts: [bob.account] }),
  'group.member.unban': signed(alice, 'group.member.unban', { ...linked, accounts: [bob.account] }),
  'group.secret.rotation': signed(alice, 'group.secret.rotation', {
    ...linked,
    client_secret_commitment: head,
    owner_encryption_public_key: bob.memberKey,
  }),
};

const check = (kind: GroupChainKind, change: JsonObject) => () =>
  checkGroupBody(network, kind, { ...good[kind], ...change });
const without = (kind: GroupChainKind, name: string) => () =>
  checkGroupBody(
    network,
    kind,
    Object.fromEntries(Object.entries(good[kind]).filter(([member]) => member !== name)),
  );
const refused = (work: () => unknown) => expect(codeOf(work)).toBe('bad_request');

describe('05 §4.4: every body', () => {
  test('there are twelve', () => {
    expect(groupChainKinds).toHaveLength(12);
    expect(isGroupChainKind('group.message')).toBe(false);
    expect(isGroupChainKind('__proto__')).toBe(false);
  });

  test.each(groupChainKinds)('%s: complete and with unknown members it passes', (kind) => {
    expect(checkGroupBody(network, kind, good[kind])).toEqual({ kind, body: good[kind] });
    const extended = { ...good[kind], future: { deep: [1, 'x'] } };
    expect(checkGroupBody(network, kind, extended).body).toBe(extended);
  });

  test.each(groupChainKinds)('%s: each member of its definition is required', (kind) => {
    const optional = kind === 'group.secret.rotation' ? ['owner_encryption_public_key'] : [];
    if (kind === 'group.update') optional.push('name');
    for (const name of Object.keys(good[kind])) {
      if (!optional.includes(name)) refused(without(kind, name));
    }
  });

  test.each(groupChainKinds)('%s: null, $context and another type are refused', (kind) => {
    for (const name of Object.keys(good[kind])) refused(check(kind, { [name]: null }));
    refused(check(kind, { future: { deep: [null] } }));
    refused(check(kind, { $context: network.context }));
    refused(check(kind, { $type: `${network.type(kind)}.v1` }));
    refused(check(kind, { $type: undefined, type: network.type(kind) }));
    refused(check(kind, { group_id: 'grp_short' }));
    refused(check(kind, { device_signature: 'short' }));
    refused(() => checkGroupBody(network, kind, [good[kind]]));
  });

  test.each(groupChainKinds.filter((kind) => kind !== 'group.create'))(
    '05 §5.1: %s with a malformed prev_hash is refused',
    (kind) => {
      for (const prev_hash of ['', head.slice(7), head.slice(0, -1), `${head.slice(0, -1)}B`]) {
        refused(check(kind, { prev_hash }));
      }
      refused(check(kind, { prev_hash: head.replace('sha256', 'SHA256') }));
    },
  );
});

describe('05 §4.5: creation', () => {
  test('it carries no prev_hash, not even null', () => {
    refused(check('group.create', { prev_hash: head }));
    refused(check('group.create', { prev_hash: null }));
  });

  test('name: 1 to 256 bytes and not only white space', () => {
    const named = (name: string) => check('group.create', { name });
    expect(named('a'.repeat(256))).not.toThrow();
    expect(named(`${'é'.repeat(127)}ab`)).not.toThrow();
    expect(named(' \u200b ')).not.toThrow();
    for (const name of ['', ' \t\u3000', 'a'.repeat(257), `${'é'.repeat(128)}a`]) {
      refused(named(name));
    }
  });

  test('description: absent, empty, or up to 4,096 bytes and not only white space', () => {
    const described = (description: string) => check('group.create', { description });
    expect(described('')).not.toThrow();
    expect(described('d'.repeat(4_096))).not.toThrow();
    for (const text of [' ', '\u0085\n', 'd'.repeat(4_097)]) refused(described(text));
  });

  test('capacity: a positive safe integer', () => {
    const sized = (member_capacity: number) => check('group.create', { member_capacity });
    expect(sized(1)).not.toThrow();
    expect(sized(Number.MAX_SAFE_INTEGER)).not.toThrow();
    for (const size of [0, -1, 1.5, Number.MAX_SAFE_INTEGER + 1]) refused(sized(size));
  });

  test('policy, owner and commitment have their form', () => {
    for (const invite_policy of ['members_targeted', 'members_shareable']) {
      expect(check('group.create', { invite_policy })).not.toThrow();
    }
    refused(check('group.create', { invite_policy: 'everyone' }));
    refused(check('group.create', { owner: { ...memberOf(alice), account: 'neo:1:x' } }));
    refused(check('group.create', { owner: { account: alice.account } }));
    refused(check('group.create', { owner: { ...memberOf(alice), $context: 'x' } }));
    refused(check('group.create', { client_secret_commitment: 'sha256:' }));
    refused(check('group.create', { nonce: 'AAAA' }));
  });
});

describe('05 §13: further bodies', () => {
  test('05 §13.6: an update without a modifiable member is refused, unknown ones do not count', () => {
    const empty = signed(alice, 'group.update', { ...linked, owner_account: bob.account });
    refused(() => checkGroupBody(network, 'group.update', empty));
    for (const one of [
      { description: '' },
      { member_capacity: 1 },
      { invite_policy: 'members_targeted' },
    ]) {
      const body = signed(alice, 'group.update', { ...linked, ...one });
      expect(() => checkGroupBody(network, 'group.update', body)).not.toThrow();
    }
  });

  test('05 §13.7: owner is no role to assign', () => {
    expect(check('group.role.update', { role: 'member' })).not.toThrow();
    for (const role of ['owner', 'Administrator', ''])
      refused(check('group.role.update', { role }));
  });

  test.each(['group.member.removal', 'group.member.ban', 'group.member.unban'] as const)(
    '%s: accounts are valid, distinct, and at least one',
    (kind) => {
      const accounts = (...list: string[]) => check(kind, { accounts: list });
      expect(accounts(bob.account, carol.account)).not.toThrow();
      refused(accounts());
      refused(accounts(bob.account, bob.account));
      refused(accounts(bob.account.replace('neo:860833102', 'neo:860833103')));
      refused(accounts(`${bob.account.slice(0, -1)}1`));
    },
  );

  test.each(['group.application.approval', 'group.member.recovery.approval'] as const)(
    '05 §4.9: %s: members are valid, distinct, and at least one',
    (kind) => {
      const members = (...list: JsonObject[]) => check(kind, { members: list });
      refused(members());
      refused(members(memberOf(bob), memberOf(bob, carol.memberKey)));
      refused(members({ ...memberOf(bob), account: `${bob.account.slice(0, -1)}1` }));
      refused(members({ ...memberOf(bob), member_encryption_public_key: 'AA' }));
      refused(members({ ...memberOf(bob), $context: network.context }));
      expect(members({ ...memberOf(bob), note: 'kept' })).not.toThrow();
    },
  );

  test('05 §13.8, §13.17: accounts of transfer and leave are valid', () => {
    refused(check('group.owner.transfer', { new_owner_account: 'neo:860833102:N' }));
    refused(check('group.member.leave', { account: `${bob.account.slice(0, -1)}1` }));
    refused(check('group.role.update', { account: `${bob.account.slice(0, -1)}1` }));
  });

  test('05 §4.10: the owner key may be left out of a rotation', () => {
    expect(without('group.secret.rotation', 'owner_encryption_public_key')).not.toThrow();
    refused(check('group.secret.rotation', { owner_encryption_public_key: 'AA' }));
  });
});

describe('05 §3.1, §3.3: signature and digest', () => {
  const body = { $type: network.type('group.close'), ...linked, future: { b: 1 } };
  const close = signAsDevice(network, body, alice);
  const verify = (object: JsonObject & { device_signature: string }, by = alice) =>
    verifySignatures(network.primitives, deviceSignatures(network, object, by.certificate), 'x');

  test('only the root signature is left out of what is signed', () => {
    expect(deviceSigningInput(network, close)).toEqual(deviceSigningInput(network, body));
    const nested = { ...body, future: { device_signature: 'x' } };
    expect(new TextDecoder().decode(deviceSigningInput(network, nested))).toContain(
      '"device_signature":"x"',
    );
    expect(() => verify(close)).not.toThrow();
  });

  test('a changed, added or removed unknown member breaks the signature', () => {
    const { future: _, ...removed } = close;
    const changes = [removed, { ...close, future: { b: 2 } }, { ...close, added: '' }];
    for (const changed of changes) {
      expect(codeOf(() => verify(changed))).toBe('invalid_signature');
    }
    expect(codeOf(() => verify(close, bob))).toBe('invalid_signature');
  });

  test('omitted and empty are different inputs', () => {
    const omitted = creationBody();
    const empty = { ...omitted, description: '' };
    expect(managementHash(network, empty)).not.toBe(managementHash(network, omitted));
    expect(codeOf(() => verify(empty))).toBe('invalid_signature');
  });

  test('the digest covers the signature', () => {
    const resigned = {
      ...close,
      device_signature: signAsDevice(network, body, bob).device_signature,
    };
    expect(managementHash(network, resigned)).not.toBe(managementHash(network, close));
  });
});
