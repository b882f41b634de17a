import { describe, expect, test } from 'vitest';
import { reduceGroup, saveGroup } from '../../src/index.ts';
import {
  alice,
  bob,
  carol,
  codeOf,
  commitment,
  dave,
  fill,
  memberOf,
  network,
  type Person,
  publicKey,
  refuse,
  role,
  Story,
  threesome,
  tryTo,
} from './fixture.ts';

const otherCommitment = `sha256:${'A'.repeat(43)}`;

describe('05 §5.4: admission and capacity', () => {
  const admission = (...who: Person[]) => ({ members: who.map((each) => memberOf(each)) });

  test('owner and administrators admit, with role member and the given key', () => {
    const story = threesome();
    const { epoch } = story.group;
    expect(tryTo(story, carol, 'group.application.approval', admission(dave))).toBe('forbidden');
    const { sequence } = story.do(bob, 'group.application.approval', admission(dave));
    const member = { ...memberOf(dave), role: 'member', since: sequence };
    expect(story.group.members.get(dave.account)).toEqual(member);
    expect(story.group.epoch).toBeGreaterThan(epoch);
  });

  test('unknown members next to account and key do not get into the state', () => {
    const story = new Story();
    const members = [{ ...memberOf(bob), role: 'owner', since: 0, note: 'x' }];
    const { sequence } = story.do(alice, 'group.application.approval', { members });
    expect(story.group.members.get(bob.account)).toEqual({
      ...memberOf(bob),
      role: 'member',
      since: sequence,
    });
  });

  test('a member or a banned account cannot be admitted; the whole batch fails', () => {
    const story = threesome();
    const both = admission(dave, carol);
    expect(tryTo(story, alice, 'group.application.approval', both)).toBe('state_conflict');
    story.do(alice, 'group.member.ban', { accounts: [dave.account] });
    const banned = admission(dave);
    expect(tryTo(story, alice, 'group.application.approval', banned)).toBe('state_conflict');
    story.do(alice, 'group.member.unban', { accounts: [dave.account] });
    story.do(alice, 'group.application.approval', banned);
  });

  test('05 §8.3: the count afterwards is at most the capacity', () => {
    const story = new Story({ member_capacity: 2 });
    const two = admission(bob, carol);
    expect(tryTo(story, alice, 'group.application.approval', two)).toBe('state_conflict');
    story.do(alice, 'group.application.approval', admission(bob));
    const third = admission(carol);
    expect(tryTo(story, alice, 'group.application.approval', third)).toBe('state_conflict');
    story.do(alice, 'group.update', { member_capacity: 3 });
    story.do(alice, 'group.application.approval', third);
    story.do(alice, 'group.update', { member_capacity: 1 });
    expect(story.group.members.size).toBe(3);
    const fourth = admission(dave);
    expect(tryTo(story, alice, 'group.application.approval', fourth)).toBe('state_conflict');
  });
});

describe('05 §5.4: leaving, removal, bans', () => {
  test('a member leaves by its own signature; the owner cannot', () => {
    const story = threesome();
    const { epoch } = story.group;
    const leave = (who: Person) => ({ account: who.account });
    expect(tryTo(story, alice, 'group.member.leave', leave(alice))).toBe('forbidden');
    expect(tryTo(story, bob, 'group.member.leave', leave(carol))).toBe('forbidden');
    expect(tryTo(story, dave, 'group.member.leave', leave(dave))).toBe('forbidden');
    story.do(carol, 'group.member.leave', leave(carol));
    expect(role(story, carol)).toBeUndefined();
    expect(story.group.epoch).toBeGreaterThan(epoch);
    expect(tryTo(story, carol, 'group.member.leave', leave(carol))).toBe('forbidden');
    story.do(bob, 'group.member.leave', leave(bob));
  });

  test.each([
    ['owner removes an administrator', alice, [bob], undefined],
    ['owner removes a member', alice, [carol], undefined],
    ['owner removes both', alice, [bob, carol], undefined],
    ['owner removes itself', alice, [alice], 'forbidden'],
    ['owner removes a nonmember', alice, [dave], 'state_conflict'],
    ['a batch with a nonmember', alice, [carol, dave], 'state_conflict'],
    ['a batch with the owner', alice, [carol, dave, alice], 'forbidden'],
    ['administrator removes a member', bob, [carol], undefined],
    ['administrator removes the owner', bob, [alice], 'forbidden'],
    ['administrator removes itself', bob, [bob], 'forbidden'],
    ['administrator removes a nonmember', bob, [dave], 'state_conflict'],
    ['member removes a member', carol, [carol], 'forbidden'],
    ['member removes a nonmember', carol, [dave], 'forbidden'],
    ['stranger removes a member', dave, [carol], 'forbidden'],
  ] as const)('05 §13.18: %s', (_, by, targets, code) => {
    const story = threesome();
    const { epoch } = story.group;
    const accounts = targets.map((each) => each.account);
    if (code !== undefined) {
      expect(tryTo(story, by, 'group.member.removal', { accounts })).toBe(code);
      return;
    }
    story.do(by, 'group.member.removal', { accounts });
    for (const account of accounts) expect(story.group.members.has(account)).toBe(false);
    expect(story.group.epoch).toBeGreaterThan(epoch);
    expect(story.group.bans.size).toBe(0);
  });

  test.each([
    ['owner bans an administrator', alice, [bob], 'removes'],
    ['owner bans a member and a nonmember', alice, [carol, dave], 'removes'],
    ['owner bans a nonmember', alice, [dave], 'keeps'],
    ['owner bans itself', alice, [alice], 'forbidden'],
    ['a batch with the owner', alice, [dave, alice], 'forbidden'],
    ['administrator bans a member', bob, [carol], 'removes'],
    ['administrator bans a nonmember', bob, [dave], 'keeps'],
    ['administrator bans the owner', bob, [alice], 'forbidden'],
    ['administrator bans itself', bob, [bob], 'forbidden'],
    ['member bans a nonmember', carol, [dave], 'forbidden'],
    ['stranger bans a stranger', dave, [dave], 'forbidden'],
  ] as const)('05 §13.19: %s', (_, by, targets, outcome) => {
    const story = threesome();
    const { epoch } = story.group;
    const accounts = targets.map((each) => each.account);
    if (outcome === 'forbidden') {
      expect(tryTo(story, by, 'group.member.ban', { accounts })).toBe('forbidden');
      return;
    }
    story.do(by, 'group.member.ban', { accounts });
    expect([...story.group.bans].sort()).toEqual([...accounts].sort());
    for (const account of accounts) expect(story.group.members.has(account)).toBe(false);
    expect(story.group.epoch > epoch).toBe(outcome === 'removes');
  });

  test('an administrator may not ban another administrator', () => {
    const story = threesome();
    story.do(alice, 'group.role.update', { account: carol.account, role: 'administrator' });
    const accounts = [carol.account];
    expect(tryTo(story, bob, 'group.member.ban', { accounts })).toBe('forbidden');
    expect(tryTo(story, bob, 'group.member.removal', { accounts })).toBe('forbidden');
  });

  test('bans merge, unbanning lifts only the ban, rejoining starts anew', () => {
    const story = threesome();
    const { since } = story.group.members.get(bob.account) as { since: number };
    story.do(alice, 'group.member.ban', { accounts: [bob.account] });
    story.do(alice, 'group.member.ban', { accounts: [bob.account, dave.account] });
    expect(tryTo(story, bob, 'group.member.unban', { accounts: [bob.account] })).toBe('forbidden');
    expect(refuse(story, story.message(bob))).toBe('forbidden');
    const { epoch } = story.group;
    story.do(alice, 'group.member.unban', { accounts: [bob.account, carol.account] });
    expect([...story.group.bans]).toEqual([dave.account]);
    expect(role(story, bob)).toBeUndefined();
    expect(role(story, carol)).toBe('member');
    expect(story.group.epoch).toBe(epoch);
    story.admit(bob);
    expect(role(story, bob)).toBe('member');
    expect(story.group.members.get(bob.account)?.since).toBeGreaterThan(since);
  });

  test('05 §6: owner and administrators unban, members do not', () => {
    const story = threesome();
    const accounts = [dave.account];
    story.do(alice, 'group.member.ban', { accounts });
    expect(tryTo(story, carol, 'group.member.unban', { accounts })).toBe('forbidden');
    story.do(bob, 'group.member.unban', { accounts });
    story.do(bob, 'group.member.unban', { accounts });
    expect(story.group.bans.size).toBe(0);
  });
});

describe('05 §5.4: key recovery and rotation', () => {
  const fresh = publicKey(fill(99, 32));

  test.each([
    ['owner approves its own', alice, [alice], undefined],
    ['owner approves an administrator and a member', alice, [bob, carol], undefined],
    ['administrator approves a member', bob, [carol], undefined],
    ['administrator approves its own', bob, [bob], 'forbidden'],
    ['administrator approves the owner', bob, [alice], 'forbidden'],
    ['administrator approves a nonmember', bob, [dave], 'state_conflict'],
    ['member approves its own', carol, [carol], 'forbidden'],
    ['owner approves a nonmember', alice, [carol, dave], 'state_conflict'],
  ] as const)('05 §13.23: %s', (_, by, targets, code) => {
    const story = threesome();
    const before = story.group;
    const members = targets.map((each) => memberOf(each, fresh));
    if (code !== undefined) {
      expect(tryTo(story, by, 'group.member.recovery.approval', { members })).toBe(code);
      return;
    }
    story.do(by, 'group.member.recovery.approval', { members });
    for (const each of targets) {
      expect(story.group.members.get(each.account)).toEqual({
        ...before.members.get(each.account),
        member_encryption_public_key: fresh,
      });
    }
    expect(story.group.epoch).toBeGreaterThan(before.epoch);
  });

  test('a rotation replaces the commitment, and the owner key if one is given', () => {
    const story = threesome();
    const { epoch } = story.group;
    const rotation = { client_secret_commitment: otherCommitment };
    story.do(alice, 'group.secret.rotation', rotation);
    expect(story.group).toMatchObject({ ...rotation, epoch: epoch + 1 });
    expect(story.group.members.get(alice.account)).toMatchObject(memberOf(alice));
    const again = { client_secret_commitment: commitment, owner_encryption_public_key: fresh };
    story.do(alice, 'group.secret.rotation', again);
    expect(story.group.members.get(alice.account)).toMatchObject(memberOf(alice, fresh));
  });

  test('the commitment must differ from the current one, the owner key too', () => {
    const story = threesome();
    const same = { client_secret_commitment: commitment };
    expect(tryTo(story, alice, 'group.secret.rotation', same)).toBe('state_conflict');
    const sameKey = {
      client_secret_commitment: otherCommitment,
      owner_encryption_public_key: alice.memberKey,
    };
    expect(tryTo(story, alice, 'group.secret.rotation', sameKey)).toBe('bad_request');
  });

  test('a rotation of the relay advances the epoch, nothing else; it has no signer', () => {
    const story = threesome();
    const before = saveGroup(story.group);
    const event = story.rotate();
    expect(saveGroup(story.group)).toEqual({
      ...before,
      sequence: event.sequence,
      epoch: before.epoch + 1,
    });
    const signer = { account: alice.account, deviceId: alice.deviceId };
    const next = { ...event, sequence: event.sequence + 1, epoch: event.epoch + 1 };
    const claimed = { ...story.verified(next), signer };
    expect(codeOf(() => reduceGroup(network, story.group, claimed))).toBe('bad_request');
    expect(refuse(story, { ...next, epoch: event.epoch })).toBe('bad_request');
  });
});
