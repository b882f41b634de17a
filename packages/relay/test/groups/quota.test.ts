/** 05 §12.2, §13.9: how much one account leaves in one group, whatever its records carry. */
import type { GroupInvite } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const most = 1_048_576;

const relay = inProcessRelay({ groupRecordBytes: most });
let ann: Person;
let ben: Person;
let eve: Person;
let group: TestGroup;

beforeEach(async () => {
  [ann, ben, eve] = (await Promise.all(
    ['ann', 'ben', 'eve'].map((name) => Person.register(relay, name)),
  )) as [Person, Person, Person];
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
});

/** A signed object of so many bytes of Canonical JSON. */
const sized = (object: JsonObject, bytes: number, by: Person): JsonObject => {
  const { device_signature: _, ...unsigned } = object;
  const sign = (length: number) => group.sign({ ...unsigned, x: 'x'.repeat(length) }, { by });
  return sign(bytes - Buffer.byteLength(canonicalJson(sign(0))));
};
const invitation = (bytes: number, by = ann, facts: Partial<GroupInvite> = {}) =>
  sized(group.invitation(facts, { by }) as never, bytes, by);
const create = (invite: JsonObject, by = ann) =>
  relay.codeOf('group.invite.create', invite, { session: by.session() });
/** What ann's invitations take; the one to ben is used up. */
const taken = async () => {
  const rows = (await relay.rows('group_invites')) as { bytes: number }[];
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
};

test("an account's valid invitations are limited together, to the byte", async () => {
  await relay.restart({ groupInvites: 1_000 });
  const before = await taken();
  expect(await create(invitation(600_000))).toBe('ok');
  const before2 = await relay.dump();
  expect(await create(invitation(most - before - 600_000 + 1))).toBe('rate_limited');
  expect(await relay.dump()).toEqual(before2);
  expect(await create(invitation(most - before - 600_000))).toBe('ok');
  expect(await create(group.invitation() as never)).toBe('rate_limited');
  // Everybody has a bound of their own, and each group is another.
  await group.setRole(ben, 'administrator');
  expect(await create(invitation(1_000_000, ben), ben)).toBe('ok');
  const other = await TestGroup.create(relay, ann);
  await other.invite();
});

test('revoked, exhausted and expired invitations do not count', async () => {
  const size = 900_000;
  const revoked = invitation(size);
  expect(await create(revoked)).toBe('ok');
  expect(await create(invitation(size))).toBe('rate_limited');
  const { invite_id } = revoked as never as GroupInvite;
  const params = { group_id: group.groupId, invite_id };
  await relay.call('group.invite.revoke', params, { session: ann.session() });
  expect(await relay.codeOf('group.invite.revoke', params, { session: ann.session() })).toBe(
    'state_conflict',
  );
  const targeted = invitation(size, ann, { invitee: eve.account }) as never as GroupInvite;
  expect(await create(targeted as never)).toBe('ok');
  await group.apply(eve, targeted);
  await group.approve([eve]);
  const short = { expires_at: relay.clock.now() + 10 };
  expect(await create(invitation(size, ann, short))).toBe('ok');
  relay.clock.advance(10);
  await relay.runJob('groups.expiry');
  expect(await create(invitation(size))).toBe('ok');
  const rows = (await relay.rows('group_invites')) as { live: number; invite: string }[];
  expect(rows.every(({ live, invite }) => (live === 1) === (invite !== ''))).toBe(true);
});

test('an invitation that another process ended is not shown', async () => {
  const { invite_id } = await group.invite();
  await relay.context.storage.write('test', (tx) =>
    tx.run("UPDATE group_invites SET live = 0, invite = '' WHERE invite_id = ?", invite_id),
  );
  const params = { group_id: group.groupId, invite_id };
  const session = ann.session();
  expect(await relay.codeOf('group.invite.resolve', params, { session })).toBe('not_found');
});

test('a recovery request counts with the invitations, and replaces an earlier one', async () => {
  await group.setRole(ben, 'administrator');
  const request = (bytes: number) => sized(group.recoveryRequest(ben) as never, bytes, ben);
  const submit = (params: JsonObject) =>
    relay.codeOf('group.member.recovery.submit', params, { session: ben.session() });
  const first = request(900_000);
  expect(await submit(first)).toBe('ok');
  expect(await submit(request(900_001))).toBe('ok');
  expect(await create(invitation(200_000, ben), ben)).toBe('rate_limited');
  expect(await create(invitation(100_000, ben), ben)).toBe('ok');
  const last = request(948_576);
  expect(await submit(last)).toBe('ok');
  // The same again is no other.
  expect(await submit(last)).toBe('ok');
  expect(await submit(request(948_577))).toBe('rate_limited');
});

test('an application counts likewise', async () => {
  const invite = await group.invite();
  const application = (bytes: number) => sized(group.application(eve, invite) as never, bytes, eve);
  const submit = (params: JsonObject) =>
    relay.codeOf('group.application.submit', params, { session: eve.session() });
  await relay.restart({ groupRecordBytes: 500_000 });
  expect(await submit(application(500_001))).toBe('rate_limited');
  expect(await submit(application(500_000))).toBe('ok');
  expect(await submit(application(499_999))).toBe('ok');
});
