import type { GroupApplicationApproval, GroupInvite, GroupParams } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { digest } from '../../../src/digest.ts';
import { type By, TestGroup } from '../../fixtures/group.ts';
import { readChain, readKeys, verified } from '../../fixtures/group-reader.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

const method = 'group.application.approve';
type Params = GroupParams<typeof method>;

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
const cem = relay.person('cem');
const dan = relay.person('dan', ['phone', 'laptop']);
const eve = relay.person('eve');
let group: TestGroup;
let invite: GroupInvite;

/** Ann owns the group, Ben administers it, Cem is a member; Dan and Eve want to be. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben, cem);
  await group.setRole(ben, 'administrator');
  invite = await group.invite();
  await group.apply(dan, invite);
  await group.apply(eve, invite);
  relay.takeNotices();
});

const codeOf = (params: unknown, by = ann) =>
  relay.codeOf(method, params, { session: by.session() });
/** An approval whose signed part is changed before it is signed. */
const approval = (
  people: readonly Person[],
  change: Partial<GroupApplicationApproval> = {},
  by: By = {},
): Params => {
  const params = group.approval(people, by);
  const { device_signature: _, ...body } = params.approval;
  const signed = group.sign({ ...body, ...change }, by) as unknown as GroupApplicationApproval;
  return { ...params, approval: signed };
};
const uses = async ({ invite_id }: GroupInvite): Promise<unknown> => {
  const rows = (await relay.rows('group_invites')) as { invite_id: string; uses: number }[];
  return rows.find((row) => row.invite_id === invite_id)?.uses;
};
const applicants = async (): Promise<number> => {
  const params = { group_id: group.groupId };
  const session = ann.session();
  const page = await relay.call('group.application.list', params, { session });
  return (page as unknown as { applications: unknown[] }).applications.length;
};
const isMember = async (person: Person) => {
  const params = { group_id: group.groupId };
  return (await relay.codeOf('group.resolve', params, { session: person.session() })) === 'ok';
};
/** Epochs whose secrets an account opens and verifies. */
const epochsOf = async (person: Person) => [
  ...verified(await readKeys(relay, group, person)).keys(),
];
const revoke = async ({ invite_id }: GroupInvite) => {
  const params = { group_id: group.groupId, invite_id };
  await relay.call('group.invite.revoke', params, { session: ann.session() });
};

describe('05 §13.15: an approval', () => {
  test('admits all accounts with their keys in one event and one epoch step', async () => {
    const params = group.approval([dan, eve], { by: ben });
    await group.approve([dan, eve], { by: ben });
    const { state } = await readChain(relay, group, ann);
    expect(state.sequence).toBe(3);
    expect(state.epoch).toBe(2);
    for (const person of [dan, eve]) {
      expect(state.members.get(person.account)).toEqual({
        account: person.account,
        role: 'member',
        member_encryption_public_key: group.keyOf(person).publicKey,
        since: 3,
      });
    }
    expect(params.approval.members).toHaveLength(2);
    expect(await applicants()).toBe(0);
    expect(await uses(invite)).toBe(2);
  });

  test("is stored as it was signed, with the signing device's certificate", async () => {
    const params = approval([dan], { extra: { deep: 'é' } } as object, { by: ben });
    expect(await codeOf(params, ben)).toBe('ok');
    const page = await relay.call(
      'group.sync',
      { group_id: group.groupId, after: 2 },
      { session: ann.session() },
    );
    expect(page).toEqual({
      events: [
        {
          sequence: 3,
          epoch: 2,
          payload: params.approval,
          accepted_at: relay.clock.now(),
          signer_device_id: ben.device().deviceId,
        },
      ],
      certificates: [ben.device().certificate],
      has_more: false,
    });
  });

  test('05 §15.2, §15.3: publishes one timeline notice, and one application notice for managers', async () => {
    await group.approve([dan, eve]);
    expect(relay.takeNotices()).toEqual([
      { kind: 'group-timeline', group: group.groupId, head: 3, accessEnded: 0 },
      {
        kind: 'group-applications',
        group: group.groupId,
        accounts: [ann.account, ben.account].sort(),
      },
    ]);
  });

  test('05 §10.2: opens access to the device that applied, from the event and its epoch on', async () => {
    await group.apply(dan, invite, { device: 'laptop' });
    await group.approve([dan]);
    const { group_intervals: intervals } = await relay.dump();
    const ofDan = (intervals as { account: string }[]).filter(
      ({ account }) => account === dan.account,
    );
    expect(ofDan).toMatchObject([
      {
        device_id: dan.device('laptop').deviceId,
        message_from: 3,
        message_to: null,
        key_from: 2,
        key_to: null,
        authority: 1,
      },
    ]);
  });

  test('05 §17.3: an admitted account opens the client secret with its new key', async () => {
    await group.approve([dan]);
    expect(await epochsOf(dan)).toEqual([2]);
  });

  test('05 §20: a device removed since it applied gets access that it cannot use', async () => {
    await group.apply(dan, invite, { device: 'laptop' });
    await dan.publishState(await dan.state({ devices: ['phone'] }));
    await group.approve([dan]);
    const params = { group_id: group.groupId };
    const session = dan.session('laptop');
    expect(await relay.codeOf('group.sync', params, { session })).toBe('unauthorized');
    expect(await isMember(dan)).toBe(true);
  });

  test('05 §13.26: keeps a staged rotation, which needs boxes for the new members', async () => {
    const secret = new Uint8Array(32).fill(7);
    const session = ann.session();
    const prepare = (params: object) =>
      relay.call('group.secret.rotation.prepare', params, { session });
    await prepare(group.preparation(secret));
    await group.approve([dan]);
    const commit = () =>
      relay.codeOf('group.secret.rotation.commit', group.rotation(secret), { session });
    expect(await commit()).toBe('state_conflict');
    await prepare(group.preparation(secret, [dan]));
    expect(await commit()).toBe('ok');
  });

  test('may come from the owner and administrators only', async () => {
    expect(await codeOf(group.approval([dan], { by: cem }), cem)).toBe('forbidden');
    expect(await codeOf(group.approval([dan], { by: dan }), dan)).toBe('forbidden');
    const stranger = await Person.register(relay, 'fay');
    expect(await codeOf(group.approval([dan], { by: stranger }), stranger)).toBe('forbidden');
    const session = ann.accountSession();
    expect(await relay.codeOf(method, group.approval([dan]), { session })).toBe('forbidden');
    expect(await codeOf(group.approval([dan], { by: ben }), ben)).toBe('ok');
  });

  test('of a banned account is refused', async () => {
    await group.ban([ben]);
    expect(await codeOf(group.approval([dan], { by: ben }), ben)).toBe('forbidden');
  });

  test('after leaving, an account joins anew with a new application and key', async () => {
    await group.approve([dan]);
    const first = group.keyOf(dan).publicKey;
    await group.leave(dan);
    await group.apply(dan, invite);
    await group.approve([dan]);
    const { state } = await readChain(relay, group, ann);
    const { member_encryption_public_key: key } = state.members.get(dan.account) ?? {};
    expect(key).toBe(group.keyOf(dan).publicKey);
    expect(key).not.toBe(first);
    expect(await epochsOf(dan)).toEqual([state.epoch]);
  });
});

describe('05 §13.15: refusals', () => {
  afterEach(async () => {
    // In all cases: no account was admitted, no use was counted, no timeline notice was published.
    expect(await uses(invite)).toBe(0);
    expect(await isMember(dan)).toBe(false);
    expect(relay.takeNotices().filter(({ kind }) => kind === 'group-timeline')).toEqual([]);
  });

  test.each([
    ['no account', { members: [] }],
    ['another $type', { $type: 'group.application.approval' }],
    ['a group ID that is none', { group_id: 'grp_x' }],
    ['a malformed prev_hash', { prev_hash: 'sha256:x' }],
    ['an account that is none', { members: [{ account: 'x', member_encryption_public_key: 'x' }] }],
    ['null', { extra: null }],
  ])('%s is bad_request', async (_, change) => {
    const params = group.approval([dan]);
    expect(await codeOf({ ...params, approval: { ...params.approval, ...change } })).toBe(
      'bad_request',
    );
  });

  test('an account twice is bad_request', async () => {
    expect(await codeOf(group.approval([dan, dan]))).toBe('bad_request');
  });

  test('boxes that are not exactly those of the accounts are bad_request', async () => {
    const both = group.approval([dan, eve]);
    const one = group.approval([dan]);
    const { client_secret_boxes: boxes } = one;
    const { client_secret_boxes: more } = both;
    expect(await codeOf({ ...both, client_secret_boxes: boxes })).toBe('bad_request');
    expect(await codeOf({ ...one, client_secret_boxes: more })).toBe('bad_request');
    expect(await codeOf({ ...one, client_secret_boxes: {} })).toBe('bad_request');
    const ofEve = { [eve.account]: boxes[dan.account] };
    expect(await codeOf({ ...one, client_secret_boxes: ofEve })).toBe('bad_request');
    const short = { [dan.account]: { ...boxes[dan.account], sealed_secret: 'AAAA' } };
    expect(await codeOf({ ...one, client_secret_boxes: short })).toBe('bad_request');
    const commitment = { client_secret_commitment: 'sha256:' };
    expect(await codeOf({ ...one, ...commitment })).toBe('bad_request');
  });

  test('an approval changed after signing, or signed by another account, is invalid_signature', async () => {
    const params = group.approval([dan]);
    const changed = { ...params.approval, extra: 1 };
    expect(await codeOf({ ...params, approval: changed })).toBe('invalid_signature');
    expect(await codeOf(group.approval([dan], { by: ben }), ann)).toBe('invalid_signature');
  });

  test('an unknown group is not_found', async () => {
    const group_id = `grp_${'A'.repeat(22)}`;
    expect(await codeOf(approval([dan], { group_id }))).toBe('not_found');
  });

  test('an account without an application is not_found, and no other account is admitted', async () => {
    const fay = await Person.register(relay, 'fay');
    group.application(fay, invite);
    expect(await codeOf(group.approval([dan, fay]))).toBe('not_found');
    expect(await applicants()).toBe(2);
  });

  test('an old head is state_conflict, before missing applications', async () => {
    const params = group.approval([dan]);
    const stranger = await Person.register(relay, 'fay');
    group.application(stranger, invite);
    const ofNobody = group.approval([stranger]);
    await group.update({ name: 'other' });
    relay.takeNotices();
    expect(await codeOf(params)).toBe('state_conflict');
    expect(await codeOf(ofNobody)).toBe('state_conflict');
  });

  test('a key other than the requested one is state_conflict', async () => {
    const key = newMemberKey();
    const members = [{ account: dan.account, member_encryption_public_key: key.publicKey }];
    expect(await codeOf(approval([dan], { members }))).toBe('state_conflict');
    // So is the key of an application that was replaced.
    const params = group.approval([dan]);
    await group.apply(dan, invite);
    expect(await codeOf(params)).toBe('state_conflict');
  });

  test('a commitment that is not the current one is state_conflict', async () => {
    const params = group.approval([dan]);
    const other = `sha256:${'A'.repeat(43)}`;
    expect(await codeOf({ ...params, client_secret_commitment: other })).toBe('state_conflict');
  });

  test('an invitation revoked or expired meanwhile is state_conflict', async () => {
    const over = await group.invite({ expires_at: relay.clock.now() + 10 });
    await group.apply(eve, over);
    relay.clock.advance(10);
    expect(await codeOf(group.approval([eve]))).toBe('state_conflict');
    expect(await codeOf(group.approval([dan, eve]))).toBe('state_conflict');
    await revoke(invite);
    expect(await codeOf(group.approval([dan]))).toBe('state_conflict');
  });

  test('in a closed group it is state_conflict', async () => {
    await group.close();
    relay.takeNotices();
    expect(await codeOf(group.approval([dan]))).toBe('state_conflict');
  });

  test('an account banned meanwhile has no application any more', async () => {
    const params = group.approval([dan]);
    await group.ban([dan]);
    relay.takeNotices();
    expect(await codeOf(params)).toBe('state_conflict');
    expect(await codeOf(group.approval([dan]))).toBe('not_found');
  });

  test('05 §12.6: a stored application that no longer verifies admits no account', async () => {
    const damage = (sql: string, ...values: string[]) =>
      relay.context.storage.write(`group:${group.groupId}`, (tx) => tx.run(sql, ...values));
    const application = await group.apply(dan, invite);
    const text = canonicalJson({ ...application, extra: 1 });
    await damage(
      'UPDATE group_applications SET application = ?, digest = ? WHERE account = ?',
      text,
      digest(text),
      dan.account,
    );
    expect(await codeOf(group.approval([dan]))).toBe('invalid_signature');
    await damage(
      "UPDATE group_certificates SET certificate = REPLACE(certificate, '}', ',\"x\":1}')",
    );
    expect(await codeOf(group.approval([eve]))).toBe('invalid_signature');
  });
});

describe('05 §13.15: repeats', () => {
  test('a repeat has the old head; signed again, there is nothing to approve', async () => {
    const params = group.approval([dan]);
    await group.write(method, params.approval, { params });
    expect(await codeOf(params)).toBe('state_conflict');
    expect(await codeOf(group.approval([dan]))).toBe('not_found');
    expect(await codeOf(group.approval([dan, eve]))).toBe('not_found');
    expect(await uses(invite)).toBe(1);
  });

  test('05 §5.2: of two approvals on one head one is accepted', async () => {
    const codes = await Promise.all([
      codeOf(group.approval([dan], { by: ann }), ann),
      codeOf(group.approval([eve], { by: ben }), ben),
    ]);
    expect(codes.sort()).toEqual(['ok', 'state_conflict']);
    expect(await uses(invite)).toBe(1);
  });
});

describe('05 §8.1: uses of invitations', () => {
  test.each([
    ['fits what is left', 2, 'ok'],
    ['is more than is left', 1, 'state_conflict'],
  ])('the sum of one batch that %s', async (_, max_uses, code) => {
    const some = await group.invite({ max_uses });
    await group.apply(dan, some);
    await group.apply(eve, some);
    expect(await codeOf(group.approval([dan, eve]))).toBe(code);
    expect(await uses(some)).toBe(code === 'ok' ? 2 : 0);
    expect(await isMember(eve)).toBe(code === 'ok');
  });

  test('uses by earlier approvals count', async () => {
    const some = await group.invite({ max_uses: 2 });
    await group.apply(dan, some);
    await group.approve([dan]);
    await group.apply(eve, some);
    const fay = await Person.register(relay, 'fay');
    await group.apply(fay, some);
    expect(await codeOf(group.approval([eve, fay]))).toBe('state_conflict');
    await group.approve([eve]);
    expect(await uses(some)).toBe(2);
    // Fay's application went with the last use.
    expect(await codeOf(group.approval([fay]))).toBe('state_conflict');
    expect(await applicants()).toBe(0);
  });

  test('a targeted invitation can be used once, also after its account left', async () => {
    const targeted = await group.invite({ invitee: dan.account });
    await group.apply(dan, targeted);
    await group.approve([dan]);
    await group.leave(dan);
    const again = group.application(dan, targeted);
    const session = dan.session();
    expect(await relay.codeOf('group.application.submit', again, { session })).toBe('forbidden');
  });

  test('a batch may use several invitations; one without enough uses fails the whole batch', async () => {
    const [one, two] = [await group.invite({ max_uses: 1 }), await group.invite({ max_uses: 5 })];
    await group.apply(dan, one);
    await group.apply(eve, two);
    const fay = await Person.register(relay, 'fay');
    await group.apply(fay, one);
    expect(await codeOf(group.approval([dan, eve, fay]))).toBe('state_conflict');
    expect([await uses(one), await uses(two)]).toEqual([0, 0]);
    expect(await codeOf(group.approval([dan, eve]))).toBe('ok');
    expect([await uses(one), await uses(two)]).toEqual([1, 1]);
  });

  test('submitting and rejecting consume no use', async () => {
    const accounts = [dan.account, eve.account];
    const params = { group_id: group.groupId, accounts };
    await relay.call('group.application.reject', params, { session: ann.session() });
    expect(await uses(invite)).toBe(0);
  });
});

describe('05 §8.3: capacity', () => {
  test.each([
    ['up to the capacity', 5, 'ok'],
    ['past the capacity', 4, 'state_conflict'],
    ['above it already', 2, 'state_conflict'],
  ])('%s', async (_, member_capacity, code) => {
    await group.update({ member_capacity });
    expect(await codeOf(group.approval([dan, eve]))).toBe(code);
    expect(await isMember(dan)).toBe(code === 'ok');
    expect(await applicants()).toBe(code === 'ok' ? 0 : 2);
  });

  test('applications reserve no place: the first approval takes it', async () => {
    await group.update({ member_capacity: 4 });
    await group.approve([eve]);
    expect(await codeOf(group.approval([dan]))).toBe('state_conflict');
    await group.leave(cem);
    expect(await codeOf(group.approval([dan]))).toBe('ok');
  });
});

describe('05 §12.6: changes between verification and commit', () => {
  const after = async (change: () => Promise<unknown>) => {
    const params = group.approval([dan]);
    relay.afterProof = async () => void (await change());
    const code = await codeOf(params);
    expect(await isMember(dan)).toBe(false);
    return code;
  };

  test('an application replaced with the same key is not the one that was verified', async () => {
    const key = group.candidates.get(dan.account)?.publicKey as string;
    const other = { member_encryption_public_key: key, extra: 1 };
    const application = group.application(dan, invite, other as object);
    group.candidates.set(dan.account, { privateKey: new Uint8Array(32), publicKey: key });
    const change = () =>
      relay.call('group.application.submit', application, { session: dan.session() });
    expect(await after(change)).toBe('state_conflict');
  });

  test('an application rejected meanwhile is not_found', async () => {
    const params = { group_id: group.groupId, accounts: [dan.account] };
    const session = ben.session();
    const change = () => relay.call('group.application.reject', params, { session });
    expect(await after(change)).toBe('not_found');
  });

  test('an invitation revoked, used up or over meanwhile is state_conflict', async () => {
    expect(await after(() => revoke(invite))).toBe('state_conflict');
    const over = await group.invite({ expires_at: relay.clock.now() + 10 });
    await group.apply(dan, over);
    expect(await after(async () => relay.clock.advance(10))).toBe('state_conflict');
  });

  test('a right lost meanwhile is forbidden', async () => {
    const params = group.approval([dan], { by: ben });
    relay.afterProof = () => group.setRole(ben, 'member');
    expect(await codeOf(params, ben)).toBe('forbidden');
    expect(await isMember(dan)).toBe(false);
  });

  test('a device removed meanwhile is unauthorized', async () => {
    await ann.addDevice('laptop');
    await ann.publishState();
    const change = async () => ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await after(change)).toBe('unauthorized');
  });

  test('a head that moved or a group that closed is state_conflict', async () => {
    expect(await after(() => group.update({ name: 'x' }))).toBe('state_conflict');
    expect(await after(() => group.close())).toBe('state_conflict');
  });

  test('a client secret rotated meanwhile is state_conflict', async () => {
    expect(await after(() => group.rotate())).toBe('state_conflict');
  });
});

test('05 §12.6: a fault at any write of an approval leaves no trace', async () => {
  const targeted = await group.invite({ invitee: dan.account });
  await group.apply(dan, targeted);
  const params = group.approval([dan, eve], { by: ben });
  const faults = await throughEveryFault(relay, () => codeOf(params, ben));
  // Certificate, event, two epochs; uses and counts of two invitations; applications; member, box
  // and access of two; the group.
  expect(faults).toBe(4 + 4 + 1 + 6 + 1);
});

test('05 §12.6: an approval is complete after a crash', async () => {
  await group.approve([dan, eve]);
  await relay.restart();
  expect(await epochsOf(eve)).toEqual([2]);
  expect(await applicants()).toBe(0);
});

test('05 §12.2: an approval runs a constant number of statements for each account', async () => {
  const statementsFor = async (people: readonly Person[]) => {
    for (const person of people) {
      await group.apply(person, await group.invite({ invitee: person.account }));
    }
    let count = 0;
    relay.faults.beforeStatement = () => {
      count += 1;
    };
    await group.approve(people);
    delete relay.faults.beforeStatement;
    return count;
  };
  const guests: Person[] = [];
  for (let each = 0; each < 12; each += 1)
    guests.push(await Person.register(relay, `guest ${each}`));
  const few = await statementsFor(guests.slice(0, 2));
  const many = await statementsFor(guests.slice(2));
  // Member, box, access; use and count of the invitation.
  expect(many - few).toBe((10 - 2) * 5);
});
