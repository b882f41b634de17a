/** 05 §12.3: who may not write in a group is refused before the group is held. */

import { createGroupSecret } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import { beforeWrite, heldDuring } from '../fixtures/before-write.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
let ann: Person;
let ada: Person;
let ben: Person;
let cem: Person;
let eve: Person;
let group: TestGroup;

beforeEach(async () => {
  [ann, ada, ben, cem, eve] = (await Promise.all(
    ['ann', 'ada', 'ben', 'cem', 'eve'].map((name) => Person.register(relay, name)),
  )) as [Person, Person, Person, Person, Person];
  group = await TestGroup.create(relay, ann);
  await group.admit(ada, ben);
  await group.setRole(ada, 'administrator');
});

type Call = (by: Person) => readonly [method: string, params: object];

const accounts = (...people: Person[]) => ({ accounts: people.map(({ account }) => account) });
const link = (method: string, kind: Parameters<TestGroup['link']>[0], facts: object): Call => {
  return (by) => [method, group.link(kind, facts as never, { by })];
};
const inGroup = (method: string, facts: object): Call => {
  return () => [method, { group_id: group.groupId, ...facts }];
};
const approvalOf = (kind: string, method: string): Call => {
  return (by) => {
    const body: JsonObject = {
      $type: network.type(kind),
      group_id: group.groupId,
      prev_hash: group.head,
      members: [{ account: ben.account, member_encryption_public_key: group.keyOf(ben).publicKey }],
    };
    const params = {
      approval: group.sign(body, { by }),
      client_secret_commitment: group.commitment,
      client_secret_boxes: { [ben.account]: group.box(ben) },
    };
    return [method, params];
  };
};

/** By the right that they need. */
const forManagers = (): Call[] => [
  link('group.member.remove', 'group.member.removal', accounts(ben)),
  link('group.member.remove', 'group.member.removal', accounts(ben, cem)),
  link('group.member.ban', 'group.member.ban', accounts(ben)),
  link('group.member.ban', 'group.member.ban', accounts(ben, cem)),
  link('group.member.unban', 'group.member.unban', accounts(cem)),
  approvalOf('group.application.approval', 'group.application.approve'),
  approvalOf('group.member.recovery.approval', 'group.member.recovery.approve'),
  inGroup('group.application.reject', accounts(cem)),
  inGroup('group.member.recovery.reject', accounts(ann, ada)),
  (by) => ['group.invite.create', group.invitation({}, { by })],
];
const forOwner = (): Call[] => [
  link('group.update', 'group.update', { name: 'team' }),
  link('group.close', 'group.close', {}),
  link('group.role.update', 'group.role.update', { account: ben.account, role: 'member' }),
  link('group.owner.transfer', 'group.owner.transfer', { new_owner_account: ben.account }),
  () => ['group.secret.rotation.prepare', group.preparation(createGroupSecret(nodeRandom))],
  (by) => {
    const rotation = group.rotation(createGroupSecret(nodeRandom));
    const { device_signature: _, ...body } = rotation;
    return ['group.secret.rotation.commit', group.sign(body, { by })];
  },
];
const forMembers = (): Call[] => [
  (by) => ['group.message.send', group.message(by, 1)],
  (by) => ['group.member.leave', group.link('group.member.leave', { account: by.account }, { by })],
  (by) => ['group.member.recovery.submit', group.recoveryRequest(by)],
];

async function refuse(by: Person, calls: readonly Call[]): Promise<void> {
  const before = await relay.dump();
  for (const call of calls) {
    const [method, params] = call(by);
    const codes: string[] = [];
    const held = await heldDuring(relay.context.storage, async () => {
      codes.push(await relay.codeOf(method, params, { session: by.session() }));
    });
    expect([method, ...codes, ...held]).toEqual([method, 'forbidden']);
  }
  expect(await relay.dump()).toEqual(before);
}

describe('05 §12.4: refused without holding the group', () => {
  test('strangers, whatever they write', async () => {
    const invite = await group.invite({ invitee: ben.account });
    const { invite_id } = invite;
    await refuse(eve, [
      ...forMembers(),
      ...forManagers(),
      ...forOwner(),
      inGroup('group.invite.revoke', { invite_id }),
      (by) => ['group.application.submit', group.application(by, invite)],
    ]);
  });

  test('banned accounts, former members, and those that left', async () => {
    await group.ban([ben, eve]);
    await group.leave(ada);
    for (const person of [ben, eve, ada]) {
      await refuse(person, [...forMembers(), ...forManagers(), ...forOwner()]);
    }
  });

  test('members without the role', async () => {
    const { invite_id } = await group.invite();
    await refuse(ben, [
      ...forManagers(),
      ...forOwner(),
      inGroup('group.invite.revoke', { invite_id }),
    ]);
    await refuse(ada, forOwner());
    await refuse(ada, [inGroup('group.invite.revoke', { invite_id })]);
  });

  test('calls in a group that does not exist', async () => {
    const { device_signature: _, ...body } = group.link('group.close', {});
    const group_id = group.groupId.replace(/^grp_./, (start) =>
      start === 'grp_A' ? 'grp_B' : 'grp_A',
    );
    const elsewhere = group.sign({ ...body, group_id });
    const codes: string[] = [];
    const held = await heldDuring(relay.context.storage, async () => {
      codes.push(await relay.codeOf('group.close', elsewhere, { session: ann.session() }));
    });
    expect([codes, held]).toEqual([['not_found'], []]);
  });
});

describe('05 §12.4: errors that come before a missing right', () => {
  test('an invalid signature, also of an account without the right', async () => {
    const body = { ...group.link('group.close', {}, { by: eve }), note: 'added' };
    const code = await relay.codeOf('group.close', body, { session: eve.session() });
    expect(code).toBe('invalid_signature');
  });

  test('the times of an invitation', async () => {
    const at = relay.clock.now() + 100_000;
    const late = group.invitation({ created_at: at, expires_at: at + 10 }, { by: eve });
    const code = await relay.codeOf('group.invite.create', late, { session: eve.session() });
    expect(code).toBe('clock_skew');
  });
});

describe('05 §12.6: the write checks the right again', () => {
  test('a right lost before the write is missing', async () => {
    const message = group.message(ben, 1);
    beforeWrite(relay.context.storage, () => group.remove([ben]));
    const session = ben.session();
    expect(await relay.codeOf('group.message.send', message, { session })).toBe('forbidden');
    const rejection = { group_id: group.groupId, accounts: [cem.account] };
    beforeWrite(relay.context.storage, () => group.setRole(ada, 'member'));
    const code = await relay.codeOf('group.application.reject', rejection, {
      session: ada.session(),
    });
    expect(code).toBe('forbidden');
  });

  test('a right gained while the signature is verified counts', async () => {
    const invitation = group.invitation({}, { by: ben });
    relay.meanwhile = () => group.setRole(ben, 'administrator');
    const session = ben.session();
    expect(await relay.codeOf('group.invite.create', invitation, { session })).toBe('ok');
  });
});
