import {
  createGroupNonce,
  encodeBase64url,
  type GroupCreate,
  type GroupState,
  limits,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { relayMigrations } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readChain, readKeys, verified } from '../fixtures/group-reader.ts';
import type { Person } from '../fixtures/person.ts';
import { throughEveryFault } from '../support/faults.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');

const rows = (table: string) => relay.rows(table);

/** Parameters of a creation, with other facts, signed by the phone. */
const founding = (facts: Partial<GroupCreate> = {}, by = ann) =>
  TestGroup.draft(relay, by, facts).params;
const create = (params: object, by = ann, device = 'phone') =>
  relay.codeOf('group.create', params, { session: by.session(device) });
/** The same with members of the body changed after signing. */
const changed = (facts: object) => {
  const params = founding();
  return { ...params, create: { ...params.create, ...facts } };
};

describe('05 §13.2: creating', () => {
  test('stores group, owner, first event and epoch, box and access, and publishes no notice', async () => {
    const params = founding({ description: 'ours', extra: { deep: [1] } } as object);
    expect(await create(params)).toBe('ok');
    expect(relay.takeNotices()).toEqual([]);
    const { group_id } = params.create;
    const group_intervals = await rows('group_intervals');
    expect(group_intervals).toMatchObject([
      { account: ann.account, device_id: ann.device().deviceId, message_from: 0, key_from: 0 },
    ]);
    const request = { group_id };
    const page = await relay.call('group.sync', request, { session: ann.session() });
    expect(page).toEqual({
      events: [
        {
          sequence: 0,
          epoch: 0,
          payload: params.create,
          accepted_at: relay.clock.now(),
          signer_device_id: ann.device().deviceId,
        },
      ],
      certificates: [ann.device().certificate],
      has_more: false,
    });
    expect(await rows('group_boxes')).toMatchObject([{ account: ann.account, from_epoch: 0 }]);
  });

  test('05 §4.1: accepts any text with a non-whitespace character, also with U+0000', async () => {
    const texts = { name: 'a\u0000b \u001b[2J', description: '\u0000\u0001x\r\n' };
    const group = await TestGroup.create(relay, ann, texts);
    const { groupId: group_id } = group;
    const state = () => relay.call('group.resolve', { group_id }, { session: ann.session() });
    expect(await state()).toMatchObject(texts);
    await group.update({ name: '\u0000' });
    expect(await state()).toMatchObject({ ...texts, name: '\u0000' });
    const { state: verifiedState } = await readChain(relay, group, ann);
    expect(verifiedState).toMatchObject({ ...texts, name: '\u0000' });
  });

  test('05 §4.1: texts stored before U+0000 was supported are unchanged', async () => {
    const texts = { name: '100 % %25', description: '%00 \\u0000' };
    const { groupId: group_id } = await TestGroup.create(relay, ann, texts);
    await relay.context.storage.write('test', async (tx) => {
      await tx.run('UPDATE groups SET name = ?, description = ?', texts.name, texts.description);
      await tx.run('DELETE FROM schema_migrations WHERE id = 405');
    });
    await migrate(relay.context.storage, relayMigrations, relay.clock.now());
    const state = await relay.call('group.resolve', { group_id }, { session: ann.session() });
    expect(state).toMatchObject(texts);
  });

  test('is verified and opened by its creator', async () => {
    const group = await TestGroup.create(relay, ann);
    const { state } = await readChain(relay, group, ann);
    expect(state).toMatchObject({ group_id: group.groupId, owner: ann.account, epoch: 0 });
    const keys = verified(await readKeys(relay, group, ann));
    expect([...keys]).toEqual([[0, encodeBase64url(group.secret)]]);
  });

  test('a group ID that is taken is state_conflict, also for its creator', async () => {
    const params = founding();
    expect(await create(params)).toBe('ok');
    const before = await relay.dump();
    expect(await create(params)).toBe('state_conflict');
    const { nonce } = params.create;
    expect(await create(founding({ nonce, name: 'other' }))).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });

  test('of two concurrent creations one is accepted', async () => {
    const params = founding();
    const codes = await Promise.all([create(params), create(params), create(params)]);
    expect(codes.sort()).toEqual(['ok', 'state_conflict', 'state_conflict']);
  });

  test('a creation for another account is forbidden, before its signature is verified', async () => {
    expect(await create(founding({}, ben))).toBe('forbidden');
    const { create: body, ...rest } = founding({}, ben);
    expect(await create({ ...rest, create: { ...body, name: 'x' } })).toBe('forbidden');
  });

  test('a creation changed after signing, or signed by another device, is invalid_signature', async () => {
    expect(await create(changed({ name: 'other' }))).toBe('invalid_signature');
    expect(await create(founding(), ann, 'laptop')).toBe('invalid_signature');
  });

  test.each([
    ['an ID that does not follow', { group_id: 'grp_AAAAAAAAAAAAAAAAAAAAAA' }],
    ['another nonce', { nonce: encodeBase64url(new Uint8Array(16)) }],
    ['a short nonce', { nonce: 'AAAA' }],
    ['another $type', { $type: network.type('group.update') }],
    ['a prev_hash', { prev_hash: `sha256:${'A'.repeat(43)}` }],
    ['a prev_hash of null', { prev_hash: null }],
    ['a name of blanks', { name: ' \t' }],
    ['a name too long', { name: 'é'.repeat(limits.groupNameBytes / 2 + 1) }],
    ['a description of blanks', { description: ' ' }],
    ['a description too long', { description: 'x'.repeat(limits.groupDescriptionBytes + 1) }],
    ['no capacity', { member_capacity: 0 }],
    ['a capacity over the cap', { member_capacity: defaultLimits.groupMembers + 1 }],
    ['an unknown policy', { invite_policy: 'everybody' }],
    ['a commitment that is none', { client_secret_commitment: 'sha256:A' }],
    ['a $context in the owner', { owner: { $context: 'x' } }],
  ])('%s is bad_request', async (_, facts) => {
    expect(await create(changed(facts))).toBe('bad_request');
    expect(await rows('groups')).toEqual([]);
  });

  test('a malformed box is bad_request', async () => {
    const params = founding();
    const box = { ...params.client_secret_box, sealed_secret: 'AAAA' };
    expect(await create({ ...params, client_secret_box: box })).toBe('bad_request');
  });

  test("05 §8.3: the capacity may be the relay's limit", async () => {
    expect(await create(founding({ member_capacity: defaultLimits.groupMembers }))).toBe('ok');
  });

  test.each([
    ['as large as a write may be', 0, 'ok'],
    ['a byte larger', 1, 'request_too_large'],
  ])('05 §12.2: %s', async (_, more, code) => {
    const sizeOf = (value: object) => Buffer.byteLength(JSON.stringify(value));
    const nonce = createGroupNonce(nodeRandom);
    const padded = (extra: string) => founding({ nonce, extra } as object);
    const padding = limits.groupWriteBytes - sizeOf(padded('')) + more;
    expect(await create(padded('x'.repeat(padding)))).toBe(code);
  });

  test('05 §12.6: a device whose certificate ends meanwhile creates no group', async () => {
    await ann.addDevice('phone', { expiresAt: relay.clock.now() + 10 });
    await ann.publishState();
    const params = founding();
    relay.meanwhile = async () => relay.clock.advance(10);
    expect(await create(params)).toBe('unauthorized');
    expect(await rows('groups')).toEqual([]);
  });

  test('05 §10.3: the account is held too: its device is removed before, or its access is closed', async () => {
    const { storage } = relay.context;
    const write = vi.spyOn(storage, 'write');
    const params = founding();
    expect(await create(params)).toBe('ok');
    const { group_id } = params.create;
    const held = write.mock.calls.map(([aggregates]) => aggregates);
    expect(held).toEqual([[`account:${ann.account}`, `group:${group_id}`]]);
  });

  test('02 §5: an account at its limit of groups creates no other, also in a race', async () => {
    await relay.restart({ groupsOfAccount: 3 });
    const taken = founding();
    expect(await create(taken)).toBe('ok');
    const second = await TestGroup.create(relay, ann);
    await second.close();
    const atOnce = await Promise.all(Array.from({ length: 6 }, () => create(founding())));
    expect(atOnce.toSorted()).toEqual(['ok', ...Array(5).fill('rate_limited')]);
    // A taken ID is reported first, and other accounts are not affected.
    expect(await create(taken)).toBe('state_conflict');
    expect(await create(founding({}, ben), ben)).toBe('ok');
    expect(await rows('groups')).toHaveLength(4);
    await relay.restart({ groupsOfAccount: 4 });
    expect(await create(founding())).toBe('ok');
  });

  test('05 §11.2: a creation is accepted when it takes effect, and retained from then on', async () => {
    relay.meanwhile = async () => relay.clock.advance(10);
    expect(await create(founding())).toBe('ok');
    expect(await rows('group_events')).toMatchObject([{ accepted_at: relay.clock.now() }]);
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    const params = founding();
    // The group, its owner, certificate, event, two for the epoch, box, access.
    expect(await throughEveryFault(relay, () => create(params))).toBe(8);
  });
});

describe('05 §13.3: resolving a group', () => {
  let group: TestGroup;
  beforeEach(async () => {
    group = await TestGroup.create(relay, ann);
  });

  const resolve = (person: Person, facts: JsonObject = {}) =>
    relay.call(
      'group.resolve',
      { group_id: group.groupId, ...facts },
      { session: person.session() },
    ) as unknown as Promise<GroupState>;
  const codeOf = async (person: Person, facts: JsonObject = {}) =>
    resolve(person, facts).then(
      () => 'ok',
      ({ code }) => code,
    );

  test('a member sees the state, with an empty description if there is none', async () => {
    const before = await relay.dump();
    expect(await resolve(ann)).toEqual({
      group_id: group.groupId,
      name: 'club',
      description: '',
      status: 'active',
      owner: ann.account,
      member_capacity: 100,
      member_count: 1,
      invite_policy: 'administrators',
    });
    expect(await relay.dump()).toEqual(before);
    await group.update({ name: 'later', description: 'x', invite_policy: 'members_targeted' });
    await group.admit(ben);
    await group.close();
    expect(await resolve(ben)).toMatchObject({
      name: 'later',
      description: 'x',
      status: 'closed',
      member_count: 2,
      invite_policy: 'members_targeted',
    });
  });

  test('others need a usable invitation, and consume no use of it', async () => {
    const { invite_id } = await group.invite({ max_uses: 1 });
    const targeted = await group.invite({ invitee: ann.account });
    expect(await codeOf(ben)).toBe('forbidden');
    expect(await codeOf(ben, { invite_id: 'inv_AAAAAAAAAAAAAAAAAAAAAA' })).toBe('forbidden');
    expect(await codeOf(ben, { invite_id: targeted.invite_id })).toBe('forbidden');
    const before = await relay.dump();
    expect(await codeOf(ben, { invite_id })).toBe('ok');
    expect(await relay.dump()).toEqual(before);
    await group.ban([ben]);
    expect(await codeOf(ben, { invite_id })).toBe('forbidden');
    await group.unban([ben]);
    expect(await codeOf(ben, { invite_id })).toBe('ok');
    relay.clock.advance(86_400);
    expect(await codeOf(ben, { invite_id })).toBe('forbidden');
  });

  test('a former member is refused', async () => {
    await group.admit(ben);
    expect(await codeOf(ben)).toBe('ok');
    await group.leave(ben);
    expect(await codeOf(ben)).toBe('forbidden');
  });

  test('a malformed ID is bad_request, an unknown group not_found', async () => {
    expect(await codeOf(ann, { group_id: 'grp_short' })).toBe('bad_request');
    expect(await codeOf(ann, { invite_id: 'inv_short' })).toBe('bad_request');
    expect(await codeOf(ann, { group_id: 'grp_AAAAAAAAAAAAAAAAAAAAAA' })).toBe('not_found');
  });
});
