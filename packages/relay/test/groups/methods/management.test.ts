import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { type By, TestGroup } from '../../fixtures/group.ts';
import { readChain } from '../../fixtures/group-reader.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import type { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

/** Every change of a group that needs no earlier request of another account. */
const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
const bob = relay.person('bob');
const cem = relay.person('cem', ['phone', 'laptop']);
const dan = relay.person('dan');
let group: TestGroup;

/** Ann owns the group, Ben and Bob administer it, Cem is a member; Dan is not. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben, bob, cem);
  await group.setRole(ben, 'administrator');
  await group.setRole(bob, 'administrator');
  relay.takeNotices();
});

const rows = (table: string) => relay.rows(table);
const who = () => ({ owner: ann, administrator: ben, other: bob, member: cem, stranger: dan });
const roles = async () =>
  new Map((await rows('group_members')).map(({ account, role }) => [account, role]));
const nowhere = 'grp_AAAAAAAAAAAAAAAAAAAAAA';
const stale = `sha256:${'A'.repeat(43)}`;

/** Every write of this file by its method: its body, signed by an account. */
const acts = {
  'group.update': (facts: object, by: By) =>
    group.link('group.update', { name: 'x', ...facts }, by),
  'group.role.update': (facts: object, by: By) =>
    group.link('group.role.update', { account: cem.account, role: 'administrator', ...facts }, by),
  'group.owner.transfer': (facts: object, by: By) =>
    group.link('group.owner.transfer', { new_owner_account: cem.account, ...facts }, by),
  'group.close': (facts: object, by: By) => group.link('group.close', facts, by),
  'group.member.leave': (facts: object, by: By) =>
    group.link('group.member.leave', { account: (by.by ?? ann).account, ...facts }, by),
  'group.member.remove': (facts: object, by: By) =>
    group.link('group.member.removal', { accounts: [cem.account], ...facts }, by),
  'group.member.ban': (facts: object, by: By) =>
    group.link('group.member.ban', { accounts: [cem.account], ...facts }, by),
  'group.member.unban': (facts: object, by: By) =>
    group.link('group.member.unban', { accounts: [dan.account], ...facts }, by),
} as const;
type Act = keyof typeof acts;
const every = Object.keys(acts) as Act[];
/** Whom an act can come from at all. */
const rightful = (act: Act): Person => (act === 'group.member.leave' ? cem : ann);
const codeOf = (act: Act, facts: object = {}, by = rightful(act)) =>
  relay.codeOf(act, acts[act](facts, { by }), { session: by.session() });

describe('05 §6: permissions', () => {
  test.each([
    ['group.update', 'owner'],
    ['group.role.update', 'owner'],
    ['group.owner.transfer', 'owner'],
    ['group.close', 'owner'],
    ['group.member.leave', 'administrator member'],
    ['group.member.unban', 'owner administrator'],
  ] as const)('%s: %s', async (act, allowed) => {
    for (const name of ['stranger', 'member', 'administrator', 'owner'] as const) {
      const isAllowed = allowed.split(' ').includes(name);
      // One at the most of them ends what the others could do.
      const fresh = await TestGroup.create(relay, ann);
      await fresh.admit(ben, cem);
      await fresh.setRole(ben, 'administrator');
      group = fresh;
      expect(await codeOf(act, {}, who()[name])).toBe(isAllowed ? 'ok' : 'forbidden');
    }
  });

  test.each([
    ['owner', 'administrator', 'ok', 'ok'],
    ['owner', 'member', 'ok', 'ok'],
    ['owner', 'stranger', 'state_conflict', 'ok'],
    ['owner', 'owner', 'forbidden', 'forbidden'],
    ['administrator', 'owner', 'forbidden', 'forbidden'],
    ['administrator', 'administrator', 'forbidden', 'forbidden'],
    ['administrator', 'other', 'forbidden', 'forbidden'],
    ['administrator', 'member', 'ok', 'ok'],
    ['administrator', 'stranger', 'state_conflict', 'ok'],
    ['member', 'stranger', 'forbidden', 'forbidden'],
    ['member', 'member', 'forbidden', 'forbidden'],
    ['stranger', 'member', 'forbidden', 'forbidden'],
  ] as const)('the %s aims at the %s: removal %s, ban %s', async (by, at, removal, ban) => {
    const accounts = [who()[at].account];
    const before = await relay.dump();
    expect(await codeOf('group.member.remove', { accounts }, who()[by])).toBe(removal);
    if (removal === 'ok') return;
    expect(await relay.dump()).toEqual(before);
    expect(await codeOf('group.member.ban', { accounts }, who()[by])).toBe(ban);
  });

  test('an administrator may ban a member that it may remove', async () => {
    expect(await codeOf('group.member.ban', {}, ben)).toBe('ok');
  });
});

describe('05 §13: refusals', () => {
  test.each(every)('%s: an unknown group, an invalid signature, an old head', async (act) => {
    const by = rightful(act);
    expect(await codeOf(act, { group_id: nowhere })).toBe('not_found');
    expect(await codeOf(act, { prev_hash: stale })).toBe('state_conflict');
    expect(await codeOf(act, { prev_hash: 'sha256:short' })).toBe('bad_request');
    const signed = { ...acts[act]({}, { by }), extra: 1 };
    expect(await relay.codeOf(act, signed, { session: by.session() })).toBe('invalid_signature');
    const before = await relay.dump();
    // Rights come before the head, and before whether the group is open.
    expect(await codeOf(act, { prev_hash: stale, account: dan.account }, dan)).toBe('forbidden');
    await group.close();
    expect(await codeOf(act)).toBe('state_conflict');
    expect(await codeOf(act, { account: dan.account }, dan)).toBe('forbidden');
    expect(await relay.rows('group_members')).toEqual(before.group_members);
  });

  test.each([
    ['group.update', { name: ' ' }],
    ['group.update', { member_capacity: 0 }],
    ['group.update', { member_capacity: 1e6 }],
    ['group.update', { invite_policy: 'everybody' }],
    ['group.role.update', { role: 'owner' }],
    ['group.role.update', { account: 'x' }],
    ['group.owner.transfer', { new_owner_account: 'x' }],
    ['group.member.remove', { accounts: [] }],
    ['group.member.ban', { accounts: [] }],
    ['group.member.unban', { accounts: [] }],
  ] as const)('%s with %j is bad_request', async (act, facts) => {
    expect(await codeOf(act, facts)).toBe('bad_request');
  });

  test.each(['group.member.remove', 'group.member.ban', 'group.member.unban'] as const)(
    '%s of an account twice is bad_request',
    async (act) => {
      const { account } = cem;
      expect(await codeOf(act, { accounts: [account, account] })).toBe('bad_request');
    },
  );

  test('an update without a known member is bad_request', async () => {
    const body = group.link('group.update', { extra: 'x' } as never);
    const session = ann.session();
    expect(await relay.codeOf('group.update', body, { session })).toBe('bad_request');
  });

  test('a role update of the owner or a stranger is state_conflict', async () => {
    for (const { account } of [ann, dan]) {
      expect(await codeOf('group.role.update', { account })).toBe('state_conflict');
    }
  });

  test('a transfer to oneself or to a stranger is forbidden, also on an old head', async () => {
    for (const { account: new_owner_account } of [ann, dan]) {
      const facts = { new_owner_account, prev_hash: stale };
      expect(await codeOf('group.owner.transfer', facts)).toBe('forbidden');
    }
  });

  test('leaving for another account is forbidden, before its signature is verified', async () => {
    const body = { ...acts['group.member.leave']({ account: cem.account }, { by: ben }), extra: 1 };
    const session = ben.session();
    expect(await relay.codeOf('group.member.leave', body, { session })).toBe('forbidden');
  });

  test('one impossible target fails the whole batch', async () => {
    const before = await relay.dump();
    const accounts = [cem.account, dan.account];
    expect(await codeOf('group.member.remove', { accounts })).toBe('state_conflict');
    const withOwner = [cem.account, ann.account];
    expect(await codeOf('group.member.ban', { accounts: withOwner })).toBe('forbidden');
    expect(await relay.dump()).toEqual(before);
  });

  test('05 §5.2: an old head is refused, even if the state is the same again', async () => {
    const body = acts['group.update']({}, { by: ann });
    await group.transfer(cem);
    const back = group.link(
      'group.owner.transfer',
      { new_owner_account: ann.account },
      { by: cem },
    );
    await group.write('group.owner.transfer', back, { by: cem });
    const session = ann.session();
    expect(await relay.codeOf('group.update', body, { session })).toBe('state_conflict');
  });
});

describe('05 §13: effects', () => {
  const state = async () => (await rows('groups'))[0];

  test.each(every)(
    '%s: one event, stored as it was signed and verified by members',
    async (act) => {
      const by = rightful(act);
      const body = acts[act]({ extra: { deep: [1] } }, { by });
      const before = await rows('group_events');
      await relay.call(act, body, { session: by.session() });
      const added = (await rows('group_events')).slice(before.length);
      expect(added.map(({ payload }) => payload)).toEqual([canonicalJson(body as never)]);
      const timeline = relay.takeNotices().filter(({ kind }) => kind === 'group-timeline');
      expect(timeline).toMatchObject([{ head: added[0]?.sequence }]);
      const { state: projection } = await readChain(relay, group, ann);
      expect(projection.sequence).toBe(added[0]?.sequence);
    },
  );

  test.each([
    ['group.update', 0],
    ['group.role.update', 0],
    ['group.owner.transfer', 0],
    ['group.close', 0],
    ['group.member.unban', 0],
    ['group.member.leave', 1],
    ['group.member.remove', 1],
    ['group.member.ban', 1],
  ] as const)('05 §7.2: %s moves the epoch by %i', async (act, step) => {
    const before = await state();
    expect(await codeOf(act)).toBe('ok');
    expect((await state())?.epoch).toBe((before?.epoch as number) + step);
    const epochs = await rows('group_epochs');
    expect(epochs).toHaveLength((before?.epoch as number) + step + 1);
    expect(new Set(epochs.map(({ relay_secret }) => relay_secret)).size).toBe(epochs.length);
  });

  test('an update replaces the named properties; a repeat on the new head is another event', async () => {
    const description = 'ours';
    await group.update({ description, member_capacity: 1, invite_policy: 'members_shareable' });
    const changed = { name: 'club', description, member_capacity: 1 };
    expect(await state()).toMatchObject({ ...changed, invite_policy: 'members_shareable' });
    await group.update({ description });
    expect(await state()).toMatchObject({ ...changed, sequence: 5 });
    await group.update({ description: '' });
    expect(await state()).toMatchObject({ name: 'club', description: '' });
  });

  test('05 §8.3: a lowered limit refuses increases only', async () => {
    await relay.restart({ groupMembers: 50 });
    expect(await codeOf('group.update', { member_capacity: 101 })).toBe('bad_request');
    await group.update({ member_capacity: 100 });
    await group.update({ member_capacity: 60 });
    expect(await codeOf('group.update', { member_capacity: 61 })).toBe('bad_request');
    await group.update({ member_capacity: 2 });
    await group.update({ member_capacity: 50 });
  });

  test('a transfer makes the former owner a member', async () => {
    await group.transfer(ben);
    expect(await state()).toMatchObject({ owner: ben.account, member_count: 4 });
    expect(await roles()).toEqual(
      new Map([
        [ann.account, 'member'],
        [ben.account, 'owner'],
        [bob.account, 'administrator'],
        [cem.account, 'member'],
      ]),
    );
  });

  test('a ban of strangers changes no member, key or access; an unban restores nothing', async () => {
    const untouched = async () => {
      const { group_members, group_intervals, group_epochs, group_boxes } = await relay.dump();
      return { group_members, group_intervals, group_epochs, group_boxes };
    };
    const before = await untouched();
    await group.ban([dan]);
    await group.ban([dan]);
    expect(await state()).toMatchObject({ ban_count: 1 });
    expect(await untouched()).toEqual(before);
    await group.ban([cem, dan]);
    expect(await state()).toMatchObject({ ban_count: 2, member_count: 3 });
    await group.unban([cem, dan, bob]);
    expect(await state()).toMatchObject({ ban_count: 0, member_count: 3 });
    expect((await roles()).has(cem.account)).toBe(false);
    expect(await rows('group_bans')).toEqual([]);
  });

  test('05 §13.19: the ban limit counts present and added bans', async () => {
    await relay.restart({ groupBans: 2 });
    expect(await codeOf('group.member.ban', { accounts: [dan.account] })).toBe('ok');
    group = await TestGroup.create(relay, ann);
    await group.admit(ben, cem);
    await group.ban([dan]);
    const two = [ben.account, cem.account];
    expect(await codeOf('group.member.ban', { accounts: two })).toBe('state_conflict');
    await group.ban([dan, cem]);
    await relay.restart({ groupBans: 1 });
    await group.ban([cem, dan]);
    const mixed = [cem.account, ben.account];
    expect(await codeOf('group.member.ban', { accounts: mixed })).toBe('state_conflict');
    await relay.restart({ groupBans: 3 });
    await group.ban([ben, cem]);
  });

  test.each(['group.member.leave', 'group.member.remove', 'group.member.ban'] as const)(
    '%s ends all access of the account, its request and its staged box',
    async (act) => {
      await relay.call(
        'group.sync',
        { group_id: group.groupId },
        { session: cem.session('laptop') },
      );
      await group.requestRecovery(cem);
      const secret = newMemberKey().privateKey;
      await relay.call('group.secret.rotation.prepare', group.preparation(secret), {
        session: ann.session(),
      });
      const { sequence, epoch } = (await state()) as { sequence: number; epoch: number };
      relay.takeNotices();
      expect(await codeOf(act)).toBe('ok');
      const ended = (await rows('group_intervals')).filter((row) => row.account === cem.account);
      expect(ended).toHaveLength(2);
      for (const row of ended) {
        expect(row).toMatchObject({ message_to: sequence, key_to: epoch, authority: 0 });
      }
      const open = (await rows('group_intervals')).filter(({ message_to }) => message_to === null);
      expect(open).toHaveLength(3);
      expect(await rows('group_recoveries')).toEqual([]);
      expect(await rows('group_stagings')).toMatchObject([{ box_count: 3 }]);
      const managers = expect.arrayContaining([ann, ben, bob].map(({ account }) => account));
      expect(relay.takeNotices()).toEqual([
        {
          kind: 'group-timeline',
          group: group.groupId,
          head: sequence + 1,
          accessEnded: sequence + 1,
        },
        { kind: 'group-recoveries', group: group.groupId, accounts: managers },
      ]);
    },
  );

  test('05 §10.3: a closed interval keeps its end when it loses its authority', async () => {
    const session = cem.session('laptop');
    await relay.call('group.sync', { group_id: group.groupId }, { session });
    await cem.publishState(await cem.state({ devices: ['phone'] }));
    await relay.runJob('accounts.inactive-devices');
    const { deviceId } = cem.device('laptop');
    const ofLaptop = async () =>
      (await rows('group_intervals')).filter((row) => row.device_id === deviceId);
    const [closed] = await ofLaptop();
    await group.update({ name: 'later' });
    await group.leave(cem);
    expect(await ofLaptop()).toEqual([{ ...closed, authority: 0 }]);
  });

  test('02 §7.2: without a next epoch no member can leave and nothing changes', async () => {
    await relay.context.storage.write(`group:${group.groupId}`, (tx) =>
      tx.run('UPDATE groups SET epoch = ?', Number.MAX_SAFE_INTEGER),
    );
    const before = await relay.dump();
    expect(await codeOf('group.member.leave')).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
    expect(await codeOf('group.update')).toBe('ok');
  });

  test.each(every)('05 §12.6: %s: a fault at any write leaves no trace', async (act) => {
    await group.requestRecovery(cem);
    await group.apply(dan, await group.invite());
    expect(await throughEveryFault(relay, () => codeOf(act))).toBeGreaterThan(2);
  });
});
