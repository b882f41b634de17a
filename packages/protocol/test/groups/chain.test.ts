import { describe, expect, test } from 'vitest';
import {
  type ChainEvent,
  currentMember,
  decideChainEvent,
  decideGroupEvent,
  type GroupEvent,
  type GroupView,
  groupStateOf,
  managementHash,
  nextGroupPosition,
  reduceGroup,
  restoreGroup,
  saveGroup,
  startGroup,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  alice,
  anchor,
  bob,
  carol,
  codeOf,
  commitment,
  creationBody,
  dave,
  eventOf,
  groupId,
  memberOf,
  network,
  type Person,
  refuse,
  role,
  Story,
  threesome,
  tryTo,
} from './fixture.ts';

const otherCommitment = `sha256:${'A'.repeat(43)}`;

describe('05 §5.4: creation', () => {
  const creation = (changes: JsonObject = {}, outer: Partial<GroupEvent> = {}) =>
    eventOf(creationBody(changes), { signer_device_id: alice.deviceId, ...outer });
  const start = (event: GroupEvent, with_ = anchor) =>
    startGroup(network, new Story().verified(event), with_);

  test('the owner is the only member, no account is banned, epoch and sequence are 0', () => {
    const { group, effects } = start(creation());
    expect(saveGroup(group)).toEqual({
      group_id: groupId,
      status: 'active',
      owner: alice.account,
      name: 'Reading circle',
      description: '',
      member_capacity: 10,
      invite_policy: 'administrators',
      client_secret_commitment: commitment,
      head: managementHash(network, creation().payload),
      sequence: 0,
      epoch: 0,
      members: [{ ...memberOf(alice), role: 'owner', since: 0 }],
      bans: [],
    });
    expect(effects.joined).toEqual([memberOf(alice)]);
    expect(effects.advancesEpoch).toBe(true);
  });

  test('05 §4.1: a description that is omitted or empty gives the same state, another digest', () => {
    const omitted = start(creation()).group;
    const empty = start(creation({ description: '' })).group;
    expect({ ...empty, head: '' }).toEqual({ ...omitted, head: '' });
    expect(empty.head).not.toBe(omitted.head);
    expect(start(creation({ description: 'x' })).group.description).toBe('x');
  });

  test('it has sequence 0 and epoch 0', () => {
    expect(codeOf(() => start(creation({}, { sequence: 1 })))).toBe('bad_request');
    expect(codeOf(() => start(creation({}, { epoch: 1 })))).toBe('bad_request');
  });

  test('the ID follows from creator, trusted host and nonce, and is the one expected', () => {
    const relay_id = `0x${'0'.repeat(40)}`;
    expect(codeOf(() => start(creation(), { ...anchor, relay_id }))).toBe('bad_request');
    const group_id = `grp_${'A'.repeat(22)}`;
    expect(codeOf(() => start(creation(), { ...anchor, group_id }))).toBe('bad_request');
    expect(codeOf(() => start(creation({ group_id }), { ...anchor, group_id }))).toBe(
      'bad_request',
    );
    expect(codeOf(() => start(creation({ nonce: 'A'.repeat(22) })))).toBe('bad_request');
  });

  test('the owner signed it and is the creator expected', () => {
    const creator = bob.account;
    expect(codeOf(() => start(creation(), { ...anchor, creator }))).toBe('forbidden');
    expect(start(creation(), { ...anchor, creator: alice.account }).group.owner).toBe(
      alice.account,
    );
    const { signer: _, ...unsigned } = new Story().verified(creation());
    expect(codeOf(() => startGroup(network, unsigned, anchor))).toBe('forbidden');
  });

  test('nothing else starts a chain, and nothing starts it twice', () => {
    const story = new Story();
    const close = story.verified(story.event(alice, 'group.close'));
    expect(codeOf(() => startGroup(network, close, anchor))).toBe('bad_request');
    expect(refuse(story, creation({}, { sequence: 1 }))).toBe('state_conflict');
  });
});

describe('05 §5.4: properties, roles, ownership, closing', () => {
  test('an update replaces what it lists and nothing else; the epoch stays', () => {
    const story = threesome();
    const { epoch } = story.group;
    story.do(alice, 'group.update', { name: 'B', owner_account: dave.account, status: 'closed' });
    expect(groupStateOf(story.group)).toEqual({
      group_id: groupId,
      name: 'B',
      description: '',
      status: 'active',
      owner: alice.account,
      member_capacity: 10,
      member_count: 3,
      invite_policy: 'administrators',
    });
    story.do(alice, 'group.update', {
      description: 'd',
      member_capacity: 1,
      invite_policy: 'members_shareable',
    });
    expect(groupStateOf(story.group)).toMatchObject({
      name: 'B',
      description: 'd',
      member_capacity: 1,
      invite_policy: 'members_shareable',
    });
    expect(story.group.epoch).toBe(epoch);
  });

  test('05 §5.2: an update to the same value is accepted and moves the head', () => {
    const story = threesome();
    const { head, name } = story.group;
    story.do(alice, 'group.update', { name });
    expect(story.group.head).not.toBe(head);
    story.do(alice, 'group.role.update', { account: bob.account, role: 'administrator' });
    expect(role(story, bob)).toBe('administrator');
  });

  test('a role is set for a current member that is not the owner', () => {
    const story = threesome();
    const set = (who: Person) => ({ account: who.account, role: 'member' });
    expect(tryTo(story, alice, 'group.role.update', set(alice))).toBe('state_conflict');
    expect(tryTo(story, alice, 'group.role.update', set(dave))).toBe('state_conflict');
    story.do(alice, 'group.role.update', set(bob));
    expect(role(story, bob)).toBe('member');
  });

  test('a transfer makes the target owner and the former owner an ordinary member', () => {
    const story = threesome();
    const { epoch } = story.group;
    story.do(alice, 'group.owner.transfer', { new_owner_account: bob.account });
    expect([role(story, alice), role(story, bob)]).toEqual(['member', 'owner']);
    expect(story.group).toMatchObject({ owner: bob.account, epoch });
    expect(tryTo(story, alice, 'group.close')).toBe('forbidden');
    story.do(bob, 'group.close');
  });

  test('05 §13.8: a transfer to oneself, to a nonmember or a banned account is forbidden', () => {
    const story = threesome();
    for (const who of [alice, dave]) {
      const members = { new_owner_account: who.account };
      expect(tryTo(story, alice, 'group.owner.transfer', members)).toBe('forbidden');
    }
    story.do(alice, 'group.member.ban', { accounts: [carol.account] });
    const members = { new_owner_account: carol.account };
    expect(tryTo(story, alice, 'group.owner.transfer', members)).toBe('forbidden');
  });

  test('05 §11.4: after closing nothing is accepted any more', () => {
    const story = threesome();
    const { epoch } = story.group;
    story.do(alice, 'group.close');
    expect(story.group).toMatchObject({ status: 'closed', epoch });
    expect(tryTo(story, alice, 'group.close')).toBe('state_conflict');
    expect(tryTo(story, alice, 'group.update', { name: 'x' })).toBe('state_conflict');
    expect(refuse(story, story.message(carol))).toBe('state_conflict');
    const rotation = new Story().rotate();
    const next = { ...rotation, sequence: story.group.sequence + 1, epoch: epoch + 1 };
    expect(refuse(story, next)).toBe('state_conflict');
    expect(tryTo(story, dave, 'group.close')).toBe('forbidden');
  });

  test.each([
    ['group.update', { name: 'x' }],
    ['group.role.update', { account: carol.account, role: 'member' }],
    ['group.owner.transfer', { new_owner_account: carol.account }],
    ['group.close', {}],
    ['group.secret.rotation', { client_secret_commitment: otherCommitment }],
  ] as const)('05 §6: only the owner may %s', (kind, members) => {
    const story = threesome();
    for (const who of [bob, carol, dave])
      expect(tryTo(story, who, kind, members)).toBe('forbidden');
    story.do(alice, kind, members);
  });
});

describe('05 §5.4: messages', () => {
  test('current members send; the head and the members stay', () => {
    const story = threesome();
    const { head, members } = story.group;
    const event = story.append(story.message(carol));
    expect(story.group).toMatchObject({ head, members, sequence: event.sequence });
    expect(refuse(story, story.message(dave))).toBe('forbidden');
  });

  test('the outer epoch is the current one and that of the envelope', () => {
    const story = threesome();
    const event = story.message(carol);
    expect(refuse(story, { ...event, epoch: event.epoch + 1 })).toBe('bad_request');
    const old = story.message(carol);
    story.rotate();
    const late = { ...old, sequence: story.group.sequence + 1, epoch: story.group.epoch };
    expect(refuse(story, late)).toBe('state_conflict');
  });
});

describe('05 §5.4, §12.4: order and priority', () => {
  test('a body of another group is refused', () => {
    const story = threesome();
    const group_id = `grp_${'A'.repeat(22)}`;
    expect(tryTo(story, alice, 'group.update', { group_id, name: 'x' })).toBe('bad_request');
    const message = story.verified(story.message(carol));
    const foreign = { ...story.group, group_id };
    expect(codeOf(() => decideGroupEvent(foreign, message))).toBe('bad_request');
  });

  test('permission comes before a stale head, a stale head before the state', () => {
    const story = threesome();
    const prev_hash = otherCommitment;
    const to = (who: Person) => ({ prev_hash, new_owner_account: who.account });
    expect(tryTo(story, alice, 'group.owner.transfer', to(dave))).toBe('forbidden');
    expect(tryTo(story, alice, 'group.owner.transfer', to(bob))).toBe('state_conflict');
    expect(tryTo(story, carol, 'group.update', { prev_hash, name: 'x' })).toBe('forbidden');
    const key = { owner_encryption_public_key: alice.memberKey };
    const rotation = { prev_hash, client_secret_commitment: otherCommitment, ...key };
    expect(tryTo(story, alice, 'group.secret.rotation', rotation)).toBe('state_conflict');
  });

  test('sequences rise, whatever the gap', () => {
    const story = threesome();
    const event = story.event(alice, 'group.update', { name: 'x' });
    for (const sequence of [0, story.group.sequence]) {
      expect(refuse(story, { ...event, sequence })).toBe('bad_request');
    }
    story.append({ ...event, sequence: story.group.sequence + 1_000 });
    expect(story.group.name).toBe('x');
  });

  test('epochs advance with the events that need it, by any step, and with no others', () => {
    const story = threesome();
    const { epoch } = story.group;
    const update = story.event(alice, 'group.update', { name: 'x' });
    for (const wrong of [epoch - 1, epoch + 1]) {
      expect(refuse(story, { ...update, epoch: wrong })).toBe('bad_request');
    }
    const removal = story.event(alice, 'group.member.removal', { accounts: [carol.account] });
    for (const wrong of [epoch - 1, epoch]) {
      expect(refuse(story, { ...removal, epoch: wrong })).toBe('bad_request');
    }
    story.append({ ...removal, epoch: epoch + 50 });
    expect(story.group.epoch).toBe(epoch + 50);
  });

  test('the signer must be the device the event names', () => {
    const story = threesome();
    const verified = story.verified(story.event(alice, 'group.update', { name: 'x' }));
    const { signer: _, ...unsigned } = verified;
    expect(codeOf(() => reduceGroup(network, story.group, unsigned))).toBe('bad_request');
    const signer = { account: alice.account, deviceId: bob.deviceId };
    const other = { ...verified, signer };
    expect(codeOf(() => reduceGroup(network, story.group, other))).toBe('bad_request');
  });

  test('05 §5.5: an unknown management type pauses the group', () => {
    const story = threesome();
    const event = eventOf({ $type: network.type('group.merge') }, { sequence: 99 });
    expect(refuse(story, event)).toBe('invalid_state');
    const foreign = eventOf({ $type: 'other.group.close' }, { sequence: 99 });
    expect(refuse(story, foreign)).toBe('invalid_state');
  });
});

describe('the rules a relay uses', () => {
  test('05 §7.2: the next position, and its refusal if no safe integer follows', () => {
    const max = Number.MAX_SAFE_INTEGER;
    const stay = { advancesEpoch: false };
    const step = { advancesEpoch: true };
    expect(nextGroupPosition({ sequence: 4, epoch: 2 }, stay)).toEqual({ sequence: 5, epoch: 2 });
    expect(nextGroupPosition({ sequence: 4, epoch: 2 }, step)).toEqual({ sequence: 5, epoch: 3 });
    const last = { sequence: max - 1, epoch: max };
    expect(nextGroupPosition(last, stay)).toEqual({ sequence: max, epoch: max });
    expect(codeOf(() => nextGroupPosition(last, step))).toBe('state_conflict');
    const full = { sequence: max, epoch: 0 };
    expect(codeOf(() => nextGroupPosition(full, stay))).toBe('state_conflict');
  });

  test('a view with only the accounts a body names is enough to decide', () => {
    const story = threesome();
    const { members, ...facts } = story.group;
    const named = new Map(
      [alice, carol].map(({ account }) => [account, members.get(account)] as const),
    );
    const view: GroupView = {
      ...facts,
      members: { size: members.size, get: (account) => named.get(account) },
    };
    const { content } = story.verified(
      story.event(alice, 'group.member.ban', { accounts: [carol.account, dave.account] }),
    );
    expect(decideChainEvent(view, content as ChainEvent, alice.account)).toEqual({
      advancesEpoch: true,
      properties: {},
      closes: false,
      roles: [],
      joined: [],
      rekeyed: [],
      left: [carol.account],
      banned: [carol.account, dave.account],
      unbanned: [],
    });
  });
});

test('05 §6: a ban counts even if a view still has the account among its members', () => {
  const { group } = threesome();
  const view = (banned: Person): GroupView => ({
    ...group,
    bans: { has: (account) => account === banned.account },
  });
  expect(codeOf(() => currentMember(view(carol), carol.account))).toBe('forbidden');
  expect(currentMember(view(carol), bob.account).role).toBe('administrator');
  const story = threesome();
  const transfer = story.event(alice, 'group.owner.transfer', { new_owner_account: bob.account });
  const { content } = story.verified(transfer);
  const decide = (banned: Person) => () =>
    decideChainEvent(view(banned), content as ChainEvent, alice.account);
  expect(decide(carol)).not.toThrow();
  expect(codeOf(decide(bob))).toBe('forbidden');
});

describe('a saved projection', () => {
  const saved = () => {
    const story = threesome();
    story.do(alice, 'group.member.ban', { accounts: [dave.account] });
    return saveGroup(story.group);
  };

  test('comes back as it was, through JSON', () => {
    const text = JSON.stringify(saved());
    expect(saveGroup(restoreGroup(JSON.parse(text)))).toEqual(saved());
  });

  test('05 §5.5: one whose parts do not agree is refused', () => {
    const good = saved();
    const [first, second, third] = good.members;
    const bad: object[] = [
      { ...good, members: [] },
      { ...good, members: [first, second, third, third] },
      { ...good, members: good.members.filter(({ role: each }) => each !== 'owner') },
      { ...good, members: good.members.map((each) => ({ ...each, role: 'owner' })) },
      { ...good, owner: bob.account },
      { ...good, bans: [dave.account, dave.account] },
      { ...good, bans: [carol.account] },
      { ...good, epoch: -1 },
      { ...good, head: 'sha256:' },
    ];
    for (const each of bad) expect(codeOf(() => restoreGroup(each))).toBe('bad_request');
  });
});
