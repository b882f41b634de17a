import {
  type GroupApplication,
  type GroupApplicationList,
  limits,
  verifyGroupApplicationList,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { TestGroup } from '../../fixtures/group.ts';
import type { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
const cem = relay.person('cem');
const dan = relay.person('dan', ['phone', 'laptop']);
const eve = relay.person('eve');
let group: TestGroup;

/** Ann owns the group, Ben administers it, Cem is a member; Dan and Eve are not. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben, cem);
  await group.setRole(ben, 'administrator');
  relay.takeNotices();
});

const submit = (application: object, person = dan, device = 'phone') =>
  relay.codeOf('group.application.submit', application, { session: person.session(device) });
const reject = (people: readonly Person[], by = ann) => {
  const accounts = people.map(({ account }) => account);
  const params = { group_id: group.groupId, accounts };
  return relay.codeOf('group.application.reject', params, { session: by.session() });
};
const revoke = ({ invite_id }: { readonly invite_id: string }) => {
  const params = { group_id: group.groupId, invite_id };
  return relay.call('group.invite.revoke', params, { session: ann.session() });
};
const list = async (person = ann): Promise<GroupApplicationList['applications']> => {
  const params = { group_id: group.groupId };
  const page = await relay.call('group.application.list', params, { session: person.session() });
  verifyGroupApplicationList(network, page, params);
  expect(page.next).toBeUndefined();
  return page.applications;
};
const hint = () => ({
  kind: 'group-applications',
  group: group.groupId,
  accounts: [ann.account, ben.account].sort(),
});

describe('05 §13.13: applying', () => {
  test('stores application, certificate and time, and notifies owner and administrators', async () => {
    const invite = await group.invite();
    const before = await relay.dump();
    const application = await group.apply(dan, invite, { extra: { deep: 'é' } } as object);
    expect(relay.takeNotices()).toEqual([hint()]);
    const accepted_at = relay.clock.now();
    const signer_certificate = dan.device().certificate;
    expect(await list()).toEqual([{ application, signer_certificate, accepted_at }]);
    // 05 §8.2: no event, no membership.
    const { groups, group_events, group_members } = await relay.dump();
    expect({ groups, group_events, group_members }).toEqual({
      groups: before.groups,
      group_events: before.group_events,
      group_members: before.group_members,
    });
    const params = { group_id: group.groupId };
    expect(await relay.codeOf('group.sync', params, { session: dan.session() })).toBe('forbidden');
  });

  test('an identical retry changes nothing: certificate and time stay, no notice is published', async () => {
    const invite = await group.invite();
    const application = await group.apply(dan, invite);
    const before = await list();
    relay.takeNotices();
    relay.clock.advance(60);
    await dan.addDevice('phone');
    await dan.publishState();
    relay.takeNotices();
    expect(await submit(application)).toBe('ok');
    expect(await submit(Object.fromEntries(Object.entries(application).reverse()))).toBe('ok');
    expect(relay.takeNotices()).toEqual([]);
    expect(await list()).toEqual(before);
  });

  test('different content replaces the application, with a new time', async () => {
    const [first, second] = [await group.invite(), await group.invite()];
    await group.apply(dan, first);
    relay.clock.advance(60);
    relay.takeNotices();
    const other = await group.apply(dan, second, { device: 'laptop' });
    expect(relay.takeNotices()).toEqual([hint()]);
    const signer_certificate = dan.device('laptop').certificate;
    const accepted_at = relay.clock.now();
    expect(await list()).toEqual([{ application: other, signer_certificate, accepted_at }]);
    // An unknown member more is another application as well.
    const again = { ...other, extra: 1 };
    const extended = group.sign(again, { by: dan, device: 'laptop' });
    expect(await submit(extended, dan, 'laptop')).toBe('ok');
    expect(await list()).toMatchObject([{ application: extended }]);
    relay.takeNotices();
    expect(await submit(extended, dan, 'laptop')).toBe('ok');
    expect(relay.takeNotices()).toEqual([]);
  });

  test.each([
    ['an account that is none', { account: 'neo:1:x' }],
    ['a key of 31 bytes', { member_encryption_public_key: 'A'.repeat(42) }],
    ['an ID that is none', { invite_id: 'inv_x' }],
    ['another $type', { $type: 'x' }],
    ['null in an unknown member', { extra: null }],
    ['no key', { member_encryption_public_key: undefined }],
  ])('%s is refused as bad_request', async (_, facts) => {
    const application = { ...group.application(dan, await group.invite()), ...facts };
    expect(await submit(application)).toBe('bad_request');
  });

  test('an application for another account is forbidden, before its signature is verified', async () => {
    const invite = await group.invite();
    expect(await submit(group.application(dan, invite, { account: eve.account }))).toBe(
      'forbidden',
    );
    const ofEve = group.application(eve, invite);
    expect(await submit(ofEve)).toBe('forbidden');
    const session = dan.accountSession();
    const own = group.application(dan, invite);
    expect(await relay.codeOf('group.application.submit', own, { session })).toBe('forbidden');
  });

  test('an application changed after signing, or signed by another device, is invalid_signature', async () => {
    const invite = await group.invite();
    const application = group.application(dan, invite);
    expect(await submit({ ...application, extra: 1 })).toBe('invalid_signature');
    expect(await submit(application, dan, 'laptop')).toBe('invalid_signature');
    // The earlier answer to the very same object is no shortcut.
    await submit(application);
    expect(await submit(application, dan, 'laptop')).toBe('invalid_signature');
  });

  test('without a usable invitation the answer is forbidden, whatever the reason', async () => {
    const revoked = await group.invite();
    await revoke(revoked);
    const over = await group.invite({ expires_at: relay.clock.now() + 1 });
    const used = await group.invite({ max_uses: 1 });
    await group.apply(eve, used);
    await group.approve([eve]);
    const forEve = await group.invite({ invitee: eve.account });
    const elsewhere = await TestGroup.create(relay, ann);
    const ofAnother = await elsewhere.invite();
    relay.clock.advance(1);
    for (const invite of [revoked, over, used, forEve, ofAnother, group.invitation()]) {
      expect(await submit(group.application(dan, invite))).toBe('forbidden');
    }
    expect(await list()).toEqual([]);
  });

  test("05 §8.1: an application is accepted until the invitation's last second", async () => {
    const invite = await group.invite({ expires_at: relay.clock.now() + 10 });
    relay.clock.advance(9);
    expect(await submit(group.application(dan, invite))).toBe('ok');
    relay.clock.advance(1);
    expect(await submit(group.application(dan, invite))).toBe('forbidden');
  });

  test('05 §12.6: the invitation must be valid when the application takes effect', async () => {
    const invite = await group.invite({ expires_at: relay.clock.now() + 10 });
    const application = group.application(dan, invite);
    relay.meanwhile = async () => relay.clock.advance(10);
    expect(await submit(application)).toBe('forbidden');
  });

  test('05 §8.2: applying consumes no use: many accounts may apply while uses are left', async () => {
    const invite = await group.invite({ max_uses: 1 });
    await group.apply(dan, invite);
    await group.apply(eve, invite);
    expect(await list()).toHaveLength(2);
    await group.approve([eve]);
    // The invitation is exhausted: the other application went with it.
    expect(await list()).toEqual([]);
    expect(await reject([dan])).toBe('not_found');
  });

  test('repeating an application whose invitation was revoked is forbidden, a new one is accepted', async () => {
    const invite = await group.invite();
    const application = await group.apply(dan, invite);
    await revoke(invite);
    expect(await submit(application)).toBe('forbidden');
    await group.apply(dan, await group.invite());
    expect(await list()).toHaveLength(1);
  });

  test('banned accounts and members are refused', async () => {
    const invite = await group.invite();
    const targeted = await group.invite({ invitee: dan.account });
    await group.ban([dan]);
    expect(await submit(group.application(dan, targeted))).toBe('forbidden');
    expect(await submit(group.application(cem, invite), cem)).toBe('state_conflict');
    await group.unban([dan]);
    expect(await submit(group.application(dan, targeted))).toBe('ok');
  });

  test('05 §12.4: only an account with an invitation learns that a group is closed', async () => {
    const invite = await group.invite();
    const application = await group.apply(dan, invite);
    await group.close();
    expect(await submit(group.application(dan, invite))).toBe('state_conflict');
    expect(await submit(application)).toBe('state_conflict');
    expect(await submit(group.application(dan, group.invitation()))).toBe('forbidden');
    const group_id = `grp_${'A'.repeat(22)}`;
    expect(await submit(group.application(dan, invite, { group_id }))).toBe('not_found');
  });

  test('an application of a device that was removed meanwhile is refused', async () => {
    const application = group.application(dan, await group.invite());
    relay.meanwhile = async () => dan.publishState(await dan.state({ devices: ['laptop'] }));
    expect(await submit(application)).toBe('unauthorized');
    expect(await list()).toEqual([]);
  });

  test.each([
    ['as large as a write may be', 0, 'ok'],
    ['one byte larger', 1, 'request_too_large'],
  ])('05 §12.2: an application %s', async (_, more, code) => {
    const invite = await group.invite();
    const empty = group.application(dan, invite, { extra: '' } as object);
    const rest = limits.groupWriteBytes - Buffer.byteLength(canonicalJson(empty)) + more;
    const extra = 'x'.repeat(rest);
    expect(await submit(group.application(dan, invite, { extra } as object))).toBe(code);
  });

  test('05 §12.6: a fault at any write of a new application leaves no trace', async () => {
    const application = group.application(dan, await group.invite());
    expect(await throughEveryFault(relay, () => submit(application))).toBe(3);
  });

  test('05 §12.6: a fault at any write of a replacement leaves the first application', async () => {
    await group.apply(dan, await group.invite());
    const other = group.application(dan, await group.invite(), { device: 'laptop' });
    expect(await throughEveryFault(relay, () => submit(other, dan, 'laptop'))).toBe(4);
    expect(await list()).toHaveLength(1);
  });

  test('05 §12.6: an accepted application exists after a crash', async () => {
    const application = await group.apply(dan, await group.invite());
    await relay.restart();
    expect(await list()).toMatchObject([{ application }]);
  });
});

describe('05 §13.16: rejecting', () => {
  const apply = async (...people: Person[]): Promise<GroupApplication[]> => {
    const invite = await group.invite({ max_uses: 2 });
    const applications = [];
    for (const person of people) applications.push(await group.apply(person, invite));
    relay.takeNotices();
    return applications;
  };

  test('deletes all applications at once, consumes no use and notifies the same accounts', async () => {
    await apply(dan, eve);
    const before = await relay.dump();
    expect(await reject([dan, eve], ben)).toBe('ok');
    expect(relay.takeNotices()).toEqual([hint()]);
    expect(await list()).toEqual([]);
    const { groups, group_events, group_invites } = await relay.dump();
    expect({ groups, group_events }).toEqual({
      groups: before.groups,
      group_events: before.group_events,
    });
    expect(group_invites?.map((invite) => (invite as { uses: number }).uses).sort()).toEqual([
      0, 2,
    ]);
  });

  test('a rejected account may apply again', async () => {
    const [application] = await apply(dan);
    await reject([dan]);
    expect(await submit(application as object)).toBe('ok');
    expect(await list()).toMatchObject([{ application }]);
  });

  test('if one application is missing, none is deleted', async () => {
    await apply(dan);
    expect(await reject([dan, eve])).toBe('not_found');
    expect(await reject([dan, cem])).toBe('not_found');
    expect(await list()).toHaveLength(1);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('an application whose invitation was revoked counts as missing', async () => {
    const invite = await group.invite({ expires_at: relay.clock.now() + 10 });
    await group.apply(dan, invite);
    relay.clock.advance(10);
    expect(await reject([dan])).toBe('not_found');
  });

  test.each([
    ['no account', []],
    ['an account twice', ['dan', 'dan']],
    ['an account of another network', ['neo:1:NXV7ZhHiyM1aHXwpVsRZC6BwNFP2jghXAq']],
  ])('%s is refused as bad_request', async (_, names) => {
    await apply(dan);
    const accounts = names.map((name) => (name === 'dan' ? dan.account : name));
    const params = { group_id: group.groupId, accounts };
    const session = ann.session();
    expect(await relay.codeOf('group.application.reject', params, { session })).toBe('bad_request');
  });

  test('05 §6: only owner and administrators may reject, others learn nothing', async () => {
    await apply(dan);
    for (const person of [cem, dan, eve]) {
      expect(await reject([dan], person)).toBe('forbidden');
      expect(await reject([eve], person)).toBe('forbidden');
    }
    await group.ban([ben]);
    expect(await reject([dan], ben)).toBe('forbidden');
    expect(await list()).toHaveLength(1);
  });

  test('in a closed group it is state_conflict, in an unknown group not_found', async () => {
    await apply(dan);
    const params = { group_id: `grp_${'A'.repeat(22)}`, accounts: [dan.account] };
    const session = ann.session();
    expect(await relay.codeOf('group.application.reject', params, { session })).toBe('not_found');
    await group.close();
    expect(await reject([dan])).toBe('state_conflict');
    expect(await reject([eve])).toBe('state_conflict');
    expect(await reject([dan], cem)).toBe('forbidden');
  });

  test('of two concurrent rejections one finds the application', async () => {
    await apply(dan);
    const codes = await Promise.all([reject([dan], ann), reject([dan], ben)]);
    expect(codes.sort()).toEqual(['not_found', 'ok']);
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    await apply(dan, eve);
    expect(await throughEveryFault(relay, () => reject([dan, eve]))).toBe(2);
  });
});

describe('05 §9.2, §13.19: a ban', () => {
  test('deletes the application and notifies managers; an unban does not restore it', async () => {
    await group.apply(dan, await group.invite());
    relay.takeNotices();
    await group.ban([dan, eve]);
    expect(relay.takeNotices()).toContainEqual(hint());
    expect(await list()).toEqual([]);
    await group.unban([dan]);
    expect(await list()).toEqual([]);
    expect(await reject([dan])).toBe('not_found');
  });

  test('of an account that did not apply publishes no application notice', async () => {
    await group.ban([dan]);
    expect(relay.takeNotices().map(({ kind }) => kind)).toEqual(['group-timeline']);
  });
});
