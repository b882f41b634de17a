import { describe, expect, test } from 'vitest';
import { winsSelection } from '../../src/contacts/sync.ts';
import {
  addGrantSignature,
  adoptRecord,
  type ContactRecord,
  checkContactSync,
  signGrant,
} from '../../src/index.ts';
import {
  alice,
  alicePhone,
  aliceState,
  bob,
  bobPhone,
  bobState,
  carol,
  codeOf,
  network,
  now,
  without,
} from './accounts.ts';

const incoming = signGrant(network, bob, { grantee: alice.account, expires_at: now + 100 });
const outgoing = signGrant(network, alice, { grantee: bob.account });
const record: ContactRecord = {
  account: bob.account,
  alias: 'Bob',
  status: 'active',
  grant_from_contact: incoming,
  grant_to_contact: outgoing,
  updated_at: now,
};
const sync = (members: Record<string, unknown>) => ({
  $type: network.type('account.contacts.sync'),
  ...members,
});
const check = (value: unknown) =>
  codeOf(() => checkContactSync(network, value, { account: alice.account }));
const checkRecord = (value: unknown) => check(sync({ records: [value] }));

describe('03 §17.1: AccountContactSync', () => {
  test('records, none and an empty list', () => {
    expect(check(sync({ records: [record] }))).toBeUndefined();
    expect(check(sync({}))).toBeUndefined();
    expect(check(sync({ records: [], request_snapshot: true }))).toBeUndefined();
  });

  test('an account twice is refused', () => {
    expect(check(sync({ records: [record, { ...record, updated_at: now + 1 }] }))).toBe(
      'bad_request',
    );
    const deleted = { account: carol.account, status: 'deleted', updated_at: now };
    expect(check(sync({ records: [record, deleted] }))).toBeUndefined();
  });

  test.each([
    ['another type', { $type: 'svc.account.contacts.sync.v2' }],
    ['$context', { $context: network.context }],
    ['records null', { records: null }],
    ['request_snapshot null', { request_snapshot: null }],
    ['request_snapshot a number', { request_snapshot: 1 }],
    ['null in an unknown member', { x: null }],
  ])('%s is refused', (_name, change) => {
    expect(check({ ...sync({ records: [record] }), ...change })).toBe('bad_request');
  });
});

describe('03 §17.2: ContactRecord', () => {
  test.each(['account', 'status', 'updated_at'])('without %s it is refused', (name) => {
    expect(checkRecord(without(record, name))).toBe('bad_request');
  });

  test('alias, grants and unknown members are optional', () => {
    const bare = { account: bob.account, status: 'active', updated_at: -1, x: 1 };
    expect(checkRecord(bare)).toBeUndefined();
  });

  test.each([
    [
      'the own account',
      {
        account: alice.account,
        grant_from_contact: undefined,
        grant_to_contact: undefined,
      },
    ],
    [
      'an account with a wrong checksum',
      {
        account: bob.account.replace(/.$/, '8'),
        grant_from_contact: undefined,
        grant_to_contact: undefined,
      },
    ],
    ['another status', { status: 'blocked' }],
    ['01 §4 K2: $context', { $context: network.context }],
    ['an alias of white space', { alias: ' \u2003' }],
    [
      'incoming grant from another account',
      {
        grant_from_contact: signGrant(network, carol, { grantee: alice.account }),
      },
    ],
    [
      'incoming grant to another account',
      {
        grant_from_contact: signGrant(network, bob, { grantee: carol.account }),
      },
    ],
    [
      'outgoing grant to another account',
      {
        grant_to_contact: signGrant(network, alice, { grantee: carol.account }),
      },
    ],
    ['the grants exchanged', { grant_from_contact: outgoing, grant_to_contact: incoming }],
    ['a malformed grant', { grant_to_contact: { ...outgoing, signatures: {} } }],
    ['$context in a grant', { grant_to_contact: { ...outgoing, $context: 'x' } }],
    ['a deleted contact with its grants', { status: 'deleted' }],
  ])('%s is refused', (_name, change) => {
    const changed = Object.entries({ ...record, ...change });
    const value = Object.fromEntries(changed.filter(([, member]) => member !== undefined));
    expect(checkRecord(value)).toBe('bad_request');
  });

  test('a deleted contact with either grant is refused, with none it passes', () => {
    const deleted = { account: bob.account, status: 'deleted', updated_at: now };
    expect(checkRecord(deleted)).toBeUndefined();
    expect(checkRecord({ ...deleted, grant_from_contact: incoming })).toBe('bad_request');
    expect(checkRecord({ ...deleted, grant_to_contact: outgoing })).toBe('bad_request');
  });

  test('an alias of 256 bytes passes, of 257 not, the empty one does', () => {
    expect(checkRecord({ ...record, alias: 'é'.repeat(128) })).toBeUndefined();
    expect(checkRecord({ ...record, alias: `${'é'.repeat(128)}x` })).toBe('bad_request');
    expect(checkRecord({ ...record, alias: '' })).toBeUndefined();
  });
});

describe('03 §17.3: selection', () => {
  test('the later state wins; of equals the one received later', () => {
    expect(winsSelection({ updated_at: 1 }, undefined)).toBe(true);
    expect(winsSelection({ updated_at: 2 }, { updated_at: 1 })).toBe(true);
    expect(winsSelection({ updated_at: 1 }, { updated_at: 1 })).toBe(true);
    expect(winsSelection({ updated_at: 1 }, { updated_at: 2 })).toBe(false);
  });

  const own = { account: alice.account, state: aliceState };
  const adopt = (current: ContactRecord | undefined, received: ContactRecord, options = {}) =>
    adoptRecord(network, { current, received, own, contactState: bobState, now, ...options });
  const tombstone: ContactRecord = {
    account: bob.account,
    status: 'deleted',
    updated_at: now + 10,
  };

  test('a new contact is adopted unchanged', () => {
    expect(adopt(undefined, record)).toEqual(record);
  });

  test('a record that loses changes nothing, its grants neither', () => {
    const better = addGrantSignature(network, outgoing, alicePhone);
    const older = { ...record, grant_to_contact: better, updated_at: now - 1 };
    expect(adopt(record, older)).toBeUndefined();
    expect(adopt(tombstone, { ...record, updated_at: now + 9 })).toBeUndefined();
  });

  test('grants are selected direction by direction', () => {
    const byPhone = signGrant(network, alicePhone, { grantee: bob.account });
    const shorter = signGrant(network, bobPhone, { grantee: alice.account, expires_at: now + 99 });
    const received = {
      ...record,
      alias: 'Bobby',
      grant_from_contact: shorter,
      grant_to_contact: byPhone,
      updated_at: now + 1,
    };
    expect(adopt(record, received)).toEqual({
      ...received,
      grant_from_contact: incoming,
      grant_to_contact: addGrantSignature(network, outgoing, alicePhone),
    });
  });

  test('a direction the record lacks stays', () => {
    const bare: ContactRecord = { account: bob.account, status: 'active', updated_at: now + 1 };
    expect(adopt(record, bare)).toEqual({
      ...bare,
      grant_from_contact: incoming,
      grant_to_contact: outgoing,
    });
  });

  test('without the contact’s state the incoming grant stays as it is', () => {
    const longer = signGrant(network, bob, { grantee: alice.account });
    const received = { ...record, grant_from_contact: longer, updated_at: now + 1 };
    expect(adopt(record, received, { contactState: undefined })).toMatchObject({
      grant_from_contact: incoming,
    });
    expect(adopt(record, received)).toMatchObject({ grant_from_contact: longer });
    const fresh = adopt(undefined, received, { contactState: undefined });
    expect(fresh?.grant_from_contact).toBeUndefined();
    expect(fresh?.grant_to_contact).toEqual(outgoing);
  });

  test('a grant that is not valid is not adopted, the record’s other members are', () => {
    const expired = signGrant(network, bob, { grantee: alice.account, expires_at: now });
    const received = { ...record, alias: 'Rob', grant_from_contact: expired, updated_at: now + 1 };
    expect(adopt(record, received)).toMatchObject({ alias: 'Rob', grant_from_contact: incoming });
  });

  test('a tombstone clears both grants, whatever their periods, and a later record restores', () => {
    expect(adopt(record, tombstone)).toEqual(tombstone);
    const again = { ...record, updated_at: now + 11 };
    expect(adopt(tombstone, again)).toEqual(again);
  });

  test('at one and the same second the later delivery stays, tombstone or not', () => {
    const at = { ...record, updated_at: tombstone.updated_at };
    expect(adopt(at, tombstone)).toEqual(tombstone);
    expect(adopt(tombstone, at)).toEqual(at);
  });

  test('unknown members stay in the record', () => {
    const received = { ...record, x: [1], updated_at: now + 1 } as ContactRecord;
    expect(adopt(record, received)).toMatchObject({ x: [1] });
  });
});
