import { describe, expect, test } from 'vitest';
import { groupParams } from '../../src/groups/requests.ts';
import {
  checkGroupParams,
  checkGroupParamsInSteps,
  encodeBase64url,
  type GroupMethodName,
  Network,
  sealClientSecret,
  sealGroupMessage,
  utf8Length,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import { groupMethods, groupNotifications } from '../../src/methods/groups.ts';
import { namedRows } from '../methods/chapters.ts';
import {
  alice,
  bob,
  carol,
  clientSecret,
  codeOf,
  commitment,
  context,
  counting,
  creationBody,
  dave,
  fill,
  groupId,
  memberOf,
  network,
  now,
  type Person,
  Story,
  signed,
} from './fixture.ts';

const random = counting();
const boxFor = ({ account, memberKey }: Person) =>
  sealClientSecret(
    network,
    {
      group_id: groupId,
      account,
      member_encryption_public_key: memberKey,
      client_secret_commitment: commitment,
    },
    { secret: clientSecret, random },
  );
const boxesFor = (...who: Person[]) =>
  Object.fromEntries(who.map((each) => [each.account, boxFor(each)]));
const story = new Story();
const invite_id = `inv_${encodeBase64url(fill(1, 16))}`;
const otherCommitment = `sha256:${'A'.repeat(43)}`;
const body = (kind: Parameters<Story['body']>[1], members: JsonObject = {}) =>
  story.body(alice, kind, members);
const approval = (kind: 'group.application.approval' | 'group.member.recovery.approval') => ({
  approval: body(kind, { members: [memberOf(bob), memberOf(carol)] }),
  client_secret_commitment: commitment,
  client_secret_boxes: boxesFor(bob, carol),
});
const request = {
  account: bob.account,
  group_id: groupId,
  member_encryption_public_key: bob.memberKey,
};

const good: Readonly<Record<GroupMethodName, JsonObject>> = {
  'group.create': { create: creationBody(), client_secret_box: boxFor(alice) },
  'group.resolve': { group_id: groupId, invite_id },
  'group.sync': { group_id: groupId, after: -1, limit: 1 },
  'group.close': body('group.close'),
  'group.update': body('group.update', { name: 'x' }),
  'group.role.update': body('group.role.update', { account: bob.account, role: 'member' }),
  'group.owner.transfer': body('group.owner.transfer', { new_owner_account: bob.account }),
  'group.invite.create': signed(alice, 'group.invite', {
    invite_id,
    group_id: groupId,
    inviter: alice.account,
    created_at: now,
    expires_at: now + 1,
  }),
  'group.invite.resolve': { group_id: groupId, invite_id },
  'group.invite.list': { group_id: groupId, cursor: 'a.b_c~d-E9', limit: 5 },
  'group.invite.revoke': { group_id: groupId, invite_id },
  'group.application.submit': signed(bob, 'group.application', { ...request, invite_id }),
  'group.application.list': { group_id: groupId },
  'group.application.approve': approval('group.application.approval'),
  'group.application.reject': { group_id: groupId, accounts: [bob.account] },
  'group.member.leave': body('group.member.leave', { account: alice.account }),
  'group.member.remove': body('group.member.removal', { accounts: [bob.account] }),
  'group.member.ban': body('group.member.ban', { accounts: [bob.account] }),
  'group.member.unban': body('group.member.unban', { accounts: [bob.account] }),
  'group.member.recovery.submit': signed(bob, 'group.member.recovery', request),
  'group.member.recovery.list': { group_id: groupId },
  'group.member.recovery.approve': approval('group.member.recovery.approval'),
  'group.member.recovery.reject': { group_id: groupId, accounts: [bob.account, carol.account] },
  'group.key.sync': { group_id: groupId },
  'group.secret.rotation.prepare': {
    group_id: groupId,
    base_commitment: commitment,
    client_secret_commitment: otherCommitment,
    client_secret_boxes: boxesFor(alice),
  },
  'group.secret.rotation.commit': body('group.secret.rotation', {
    client_secret_commitment: otherCommitment,
  }),
  'group.message.send': sealGroupMessage(network, {
    group_id: groupId,
    from: alice,
    epoch: 0,
    applicationSecret: fill(1, 32),
    createdAt: now,
    content: { $type: 'x' },
    random,
  }),
  'group.subscribe': { group_ids: [groupId] },
};
const names = Object.keys(groupParams) as GroupMethodName[];

const check =
  (name: GroupMethodName, changes: object = {}) =>
  () =>
    checkGroupParams(network, name, { ...good[name], ...changes });
const refused = (name: GroupMethodName, changes: object) =>
  expect(codeOf(check(name, changes))).toBe('bad_request');

describe('05 §13: parameters of every method', () => {
  test.each(names)('%s: complete ones pass, with unknown members too', (name) => {
    expect(check(name)).not.toThrow();
    if (!Object.hasOwn(good[name], 'device_signature')) {
      expect(check(name, { future: { x: [1] } })).not.toThrow();
    }
  });

  test.each(names)('%s: null is allowed nowhere', (name) => {
    for (const member of Object.keys(good[name])) refused(name, { [member]: null });
    refused(name, { future: null });
    refused(name, { future: [{ x: null }] });
  });

  test.each(names)('%s: what has no default is required', (name) => {
    const optional = ['after', 'limit', 'cursor'];
    if (name === 'group.resolve') optional.push('invite_id');
    if (name === 'group.update') optional.push('name');
    for (const member of Object.keys(good[name])) {
      if (!optional.includes(member)) refused(name, { [member]: undefined });
    }
    expect(codeOf(() => checkGroupParams(network, name, []))).toBe('bad_request');
  });

  test.each(names.filter((name) => Object.hasOwn(good[name], 'group_id')))(
    '%s: the group has the form of an ID',
    (name) => {
      for (const group_id of ['', 'grp_', groupId.slice(0, -1), `${groupId}A`, 7]) {
        refused(name, { group_id });
      }
    },
  );
});

describe('05 §12.7, §12.8: paging', () => {
  test.each(['group.sync', 'group.key.sync'] as const)(
    '%s: after from -1, limit from 1',
    (name) => {
      expect(check(name, { after: 0, limit: Number.MAX_SAFE_INTEGER })).not.toThrow();
      for (const changes of [{ after: -2 }, { after: 1.5 }, { after: '1' }, { limit: 0 }]) {
        refused(name, changes);
      }
    },
  );

  test.each(['group.invite.list', 'group.application.list', 'group.member.recovery.list'] as const)(
    '%s: a cursor is opaque text of its alphabet',
    (name) => {
      for (const cursor of ['', 'a b', 'ä', 'a/b', 'a\n', 7]) refused(name, { cursor });
      for (const limit of [0, -1, 2.5, '3']) refused(name, { limit });
    },
  );
});

describe('05 §13.15, §13.23: approvals', () => {
  test.each(['group.application.approve', 'group.member.recovery.approve'] as const)(
    '%s: the boxes are exactly those of the accounts approved',
    (name) => {
      refused(name, { client_secret_boxes: {} });
      refused(name, { client_secret_boxes: boxesFor(bob) });
      refused(name, { client_secret_boxes: boxesFor(bob, carol, dave) });
      refused(name, { client_secret_boxes: boxesFor(bob, dave) });
      const broken = { ...boxesFor(bob, carol), [carol.account]: { alg: 'x' } };
      refused(name, { client_secret_boxes: broken });
      const line = { ...boxesFor(bob, carol), 'with\nline feed': 1 };
      refused(name, { client_secret_boxes: line });
      refused(name, { client_secret_commitment: 'sha256:x' });
    },
  );

  test('an approval of the other kind is refused', () => {
    const { approval: other } = approval('group.member.recovery.approval');
    refused('group.application.approve', { approval: other });
  });

  test.each(['group.application.reject', 'group.member.recovery.reject'] as const)(
    '%s: accounts are valid, distinct, and at least one',
    (name) => {
      refused(name, { accounts: [] });
      refused(name, { accounts: [bob.account, bob.account] });
      refused(name, { accounts: [`${bob.account.slice(0, -1)}1`] });
    },
  );
});

describe('05 §13.26: preparation', () => {
  const name = 'group.secret.rotation.prepare';

  test('it has at least one box, and accounts for names', () => {
    refused(name, { client_secret_boxes: {} });
    refused(name, { client_secret_boxes: { me: boxFor(alice) } });
    refused(name, { client_secret_boxes: { ...boxesFor(alice), [bob.account]: {} } });
  });

  test('the new commitment differs from the base', () => {
    refused(name, { client_secret_commitment: commitment });
    refused(name, { base_commitment: 'x' });
  });
});

test('05 §13.29: a subscription may be empty, but names no group twice', () => {
  expect(check('group.subscribe', { group_ids: [] })).not.toThrow();
  refused('group.subscribe', { group_ids: [groupId, groupId] });
  refused('group.subscribe', { group_ids: ['grp_x'] });
});

describe('05 §12.2: sizes', () => {
  const padded = (name: GroupMethodName, bytes: number) => {
    const empty = { ...good[name], padding: '' };
    return { padding: 'x'.repeat(bytes - utf8Length(canonicalJson(empty))) };
  };

  test('1,048,576 bytes of Canonical JSON pass for a write, one more does not', () => {
    const name = 'group.application.reject';
    expect(check(name, padded(name, 1_048_576))).not.toThrow();
    expect(codeOf(check(name, padded(name, 1_048_577)))).toBe('request_too_large');
    const create = 'group.create';
    expect(codeOf(check(create, padded(create, 1_048_577)))).toBe('request_too_large');
  });

  test('a message has its own, smaller limit', () => {
    const name = 'group.message.send';
    expect(check(name, padded(name, 262_144))).not.toThrow();
    expect(codeOf(check(name, padded(name, 262_145)))).toBe('request_too_large');
  });

  test('reads have none of their own', () => {
    expect(check('group.resolve', padded('group.resolve', 1_048_577))).not.toThrow();
  });
});

describe('the catalogue entries', () => {
  test('05 §13.1: names, verbs and results are those of the table', () => {
    const rows = namedRows('05-groups.md', '### 13.1 Table');
    expect(Object.keys(groupMethods)).toEqual(rows.map(([name]) => name));
    for (const [name, verbs, , ok] of rows) {
      const definition = groupMethods[name as GroupMethodName];
      expect([...definition.http]).toEqual(verbs === 'none' ? [] : [verbs]);
      expect(definition.session).toBe('device');
      expect(definition.capability).toBe('group.host.v1');
      expect(definition.result !== null).toBe(ok === '200');
      expect(definition.name).toBe(name);
    }
  });

  test('05 §15.1: notifications and their parameters are those of the table', () => {
    const rows = namedRows('05-groups.md', '### 15.1 Common');
    expect(Object.keys(groupNotifications)).toEqual(rows.map(([name]) => name));
    for (const [name, params] of rows) {
      const { properties } = groupNotifications[name as keyof typeof groupNotifications].params;
      const listed = (params as string).match(/^[a-z_]+|(?<=, )[a-z_]+(?= \()/g);
      expect(Object.keys(properties)).toEqual(listed);
    }
  });
});

describe('05 §12.2: what is refused anyway costs little of each account', () => {
  /** Hashes a check takes: two for each account ID it looks into. */
  const hashesOf = (name: GroupMethodName, params: JsonObject) => {
    let hashes = 0;
    const sha256 = (data: Uint8Array) => {
      hashes += 1;
      return network.primitives.sha256(data);
    };
    const counted = new Network({ context, primitives: { ...network.primitives, sha256 } });
    const code = codeOf(() => checkGroupParams(counted, name, params));
    return { code, hashes };
  };
  const many = Array.from(
    { length: 30_000 },
    (_, index) => `${alice.account.slice(0, -5)}${String(10_000 + index).replaceAll('0', 'A')}`,
  );
  const chained = { group_id: groupId, prev_hash: commitment, device_signature: 'A'.repeat(86) };

  test('more accounts than a request can hold: too large, before any account is checked', () => {
    const accounts = [...new Set(many)];
    for (const name of ['ban', 'removal', 'unban'] as const) {
      const method = name === 'removal' ? 'group.member.remove' : (`group.member.${name}` as const);
      const $type = network.type(`group.member.${name}`);
      expect(hashesOf(method, { $type, ...chained, accounts })).toEqual({
        code: 'request_too_large',
        hashes: 0,
      });
    }
    const rejection = { group_id: groupId, accounts };
    for (const name of ['group.application.reject', 'group.member.recovery.reject'] as const) {
      expect(hashesOf(name, rejection)).toEqual({ code: 'request_too_large', hashes: 0 });
    }
  });

  test('an account that is named twice: refused before any account is checked', () => {
    const accounts = [...new Set(many.slice(0, 9_000)), alice.account, alice.account];
    const $type = network.type('group.member.ban');
    expect(hashesOf('group.member.ban', { $type, ...chained, accounts })).toEqual({
      code: 'bad_request',
      hashes: 0,
    });
    const members = accounts.map((account) => ({ ...memberOf(bob), account })).slice(-1_000);
    const $approval = network.type('group.application.approval');
    const approvals = {
      approval: { $type: $approval, ...chained, members },
      client_secret_commitment: commitment,
      client_secret_boxes: boxesFor(bob),
    };
    expect(hashesOf('group.application.approve', approvals)).toEqual({
      code: 'bad_request',
      hashes: 0,
    });
  });

  test('every account of a batch that fits is checked', () => {
    const wrong = alice.account.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    const accounts = [alice.account, bob.account, carol.account, wrong];
    const $type = network.type('group.member.unban');
    // Those that passed before are known; each other takes two hashes.
    expect(hashesOf('group.member.unban', { $type, ...chained, accounts })).toEqual({
      code: 'bad_request',
      hashes: 2,
    });
  });
});

describe('large lists in steps', () => {
  const method = 'group.member.ban';
  /** Of the form of account IDs; only their checksums are wrong. */
  const accounts = Array.from(
    { length: 2_000 },
    (_, index) =>
      `neo:5:N${String(index + 2_000)
        .replaceAll('0', 'A')
        .padStart(33, '2')}`,
  );
  const ban = (list: readonly string[]) => ({ ...good[method], accounts: list }) as JsonObject;

  /** Runs the steps; returns how many accounts each one reads, and the error that ended them. */
  function readsOf(list: readonly string[]) {
    const reads = [0];
    const watched = new Proxy(list, {
      get(target, name) {
        if (typeof name === 'string' && /^[0-9]+$/.test(name)) reads.push((reads.pop() ?? 0) + 1);
        return Reflect.get(target, name);
      },
    });
    const steps = checkGroupParamsInSteps(network, method, ban(watched));
    try {
      while (steps.next().done !== true) reads.push(0);
    } catch (error) {
      return { reads, error };
    }
    return { reads, error: undefined };
  }

  test('05 §4.4: after schema and size, no step reads more than 500 accounts', () => {
    const { reads, error } = readsOf(accounts);
    expect(error).toMatchObject({ code: 'bad_request', message: expect.stringContaining('.0') });
    const [, , ...compared] = reads;
    expect(compared.length).toBeGreaterThan(4);
    expect(Math.max(...compared)).toBe(500);
  });

  test.each([[0], [1_998]])(
    '05 §4.4: an account named twice is bad_request, before each is checked (%i)',
    (place) => {
      const list = [...accounts.slice(0, -1), accounts[place] as string];
      const { error } = readsOf(list);
      expect(error).toMatchObject({
        code: 'bad_request',
        message: expect.stringContaining('names an account twice'),
      });
      expect(codeOf(() => checkGroupParams(network, method, ban(list)))).toBe('bad_request');
    },
  );
});
