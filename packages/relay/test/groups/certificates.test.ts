/** 05 §11.2, §8.1: certificates are kept as long as something readable refers to them. */
import { beforeEach, expect, test } from 'vitest';
import { groups } from '../../src/groups/index.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { RelayData } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const day = 86_400;
const hour = 3_600;
const retention = 10 * day;

const relay = inProcessRelay({ groupMessageRetention: retention, groupRecoveryWait: day });
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop']);
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
});

type Rows = readonly Record<string, string>[];
/** Both jobs, as far as they get. */
const clear = async () => {
  await relay.runJob('groups.expiry');
  return await relay.runJob('groups.retention');
};
/** Whose certificates a group keeps. */
const kept = async (of = group) => {
  const rows = (await relay.rows('group_certificates')) as unknown as Rows;
  return rows
    .filter(({ group_id }) => group_id === of.groupId)
    .map(({ certificate = '' }) => (JSON.parse(certificate) as { account: string }).account)
    .map((account) => (account === ann.account ? 'ann' : 'ben'))
    .sort();
};

test("a management event's certificate is stored for good", async () => {
  await group.admit(ben);
  await group.setRole(ben, 'administrator');
  await group.ban([await Person.register(relay, 'eve')], { by: ben });
  await group.send(ben, 1);
  relay.clock.advance(100 * retention);
  await clear();
  expect(await kept()).toEqual(['ann', 'ben']);
});

test('a certificate of messages only is stored as long as the last message', async () => {
  await group.admit(ben);
  relay.clock.advance(2 * day);
  await clear();
  expect(await kept()).toEqual(['ann']);
  await group.send(ben, 1);
  relay.clock.advance(day);
  await group.send(ben, 1);
  relay.clock.advance(retention - 1);
  await clear();
  expect(await kept()).toEqual(['ann', 'ben']);
  const page = await relay.call(
    'group.sync',
    { group_id: group.groupId },
    { session: ann.session() },
  );
  expect((page as { certificates: unknown[] }).certificates).toHaveLength(2);
  relay.clock.advance(1 + hour);
  expect(await clear()).toBe(undefined);
  expect(await kept()).toEqual(['ann']);
});

test("an applicant's certificate is stored as long as the application, however it ends", async () => {
  const invite = await group.invite();
  await group.apply(ben, invite);
  relay.clock.advance(invite.expires_at - relay.clock.now() - 1);
  await clear();
  const list = { group_id: group.groupId };
  const page = await relay.call('group.application.list', list, { session: ann.session() });
  expect(page).toMatchObject({ applications: [{ signer_certificate: { account: ben.account } }] });
  relay.clock.advance(1 + hour);
  await clear();
  expect(await kept()).toEqual(['ann']);
});

test('a certificate of an invitation or recovery request is stored while that is pending', async () => {
  await group.update({ invite_policy: 'members_shareable' });
  await group.admit(ben);
  relay.clock.advance(2 * day);
  await clear();
  const invite = await group.invite({ expires_at: relay.clock.now() + 3 * day }, { by: ben });
  await group.requestRecovery(ben, 'laptop');
  relay.clock.advance(day + hour);
  await clear();
  expect(await kept()).toEqual(['ann', 'ben']);
  const params = { group_id: group.groupId, invite_id: invite.invite_id };
  const answer = await relay.call('group.invite.resolve', params, { session: ben.session() });
  expect(answer).toMatchObject({ signer_certificate: { account: ben.account } });
  relay.clock.advance(2 * day);
  await clear();
  expect(await kept()).toEqual(['ann']);
});

test('a record that outlasts its deadline keeps its certificate, which is checked again later', async () => {
  const invite = await group.invite();
  await group.apply(ben, invite);
  await relay.context.storage.write('test', (tx) =>
    tx.run('UPDATE group_certificates SET needed_until = 1 WHERE needed_until IS NOT NULL'),
  );
  expect(await relay.runJob('groups.retention')).toBe(relay.clock.now() + hour);
  expect(await kept()).toEqual(['ann', 'ben']);
  await group.approve([ben]);
  relay.clock.advance(hour);
  await clear();
  expect(await kept()).toEqual(['ann']);
});

test('more certificates than one batch holds, each group separately', async () => {
  const other = await TestGroup.create(relay, ann);
  await other.admit(ben);
  await other.send(ben, 1);
  await relay.context.storage.write('test', async (tx) => {
    for (let count = 0; count < 450; count += 1) {
      await tx.run(
        `INSERT INTO group_certificates (group_id, certificate_id, certificate, needed_until)
          VALUES (?, ?, '{}', 1)`,
        group.groupId,
        `certificate ${count}`,
      );
    }
  });
  relay.clock.advance(2 * day);
  await clear();
  expect(await kept()).toEqual(['ann']);
  expect(await kept(other)).toEqual(['ann', 'ben']);
});

test("an upgraded database keeps each group's certificates with their deadlines", async () => {
  await using data = await RelayData.empty();
  await using storage = await data.open();
  const before = groups.migrations.filter(({ id }) => id < 407);
  await migrate(storage, before, 1);
  await storage.write('test', async (tx) => {
    for (const id of ['event', 'message', 'invite', 'application', 'recovery', 'none']) {
      await tx.run(
        'INSERT INTO group_certificates (certificate_id, certificate) VALUES (?, ?)',
        id,
        `{"${id}":1}`,
      );
    }
    const event = `INSERT INTO group_events (group_id, sequence, epoch, accepted_at,
        certificate_id, bytes, payload) VALUES ('g', ?, 0, 1, ?, 2, '{}')`;
    await tx.run(event, 0, 'event');
    await tx.run(event, 1, null);
    const message = `INSERT INTO group_messages (group_id, sequence, epoch, accepted_at, keep_until,
        signer_device_id, certificate_id, bytes, payload) VALUES (?, ?, 0, 1, ?, 'd', ?, 2, '{}')`;
    await tx.run(message, 'g', 2, 900, 'event');
    await tx.run(message, 'g', 3, 500, 'message');
    await tx.run(message, 'g', 4, 700, 'message');
    await tx.run(message, 'h', 4, 600, 'message');
    await tx.run(
      `INSERT INTO group_invites (group_id, invite_id, inviter, expires_at, uses, revoked, live,
          pending, signer_device_id, certificate_id, bytes, invite)
        VALUES ('g', 'i', 'a', 800, 0, 0, 1, 0, 'd', 'invite', 2, '{}')`,
    );
    await tx.run(
      `INSERT INTO group_applications (group_id, account, invite_id, device_id, certificate_id,
          member_key, digest, accepted_at, bytes, application)
        VALUES ('g', 'a', 'i', 'd', 'application', 'k', 'd', 300, 2, '{}')`,
    );
    await tx.run(
      `INSERT INTO group_recoveries (group_id, account, device_id, certificate_id, accepted_at,
          expires_at, member_key, digest, bytes, request)
        VALUES ('g', 'a', 'd', 'recovery', 1, 400, 'k', 'd', 2, '{}')`,
    );
  });
  await migrate(storage, groups.migrations, 2);
  const rows = await storage.read((tx) =>
    tx.all('SELECT * FROM group_certificates ORDER BY group_id, certificate_id'),
  );
  const row = (group_id: string, certificate_id: string, needed_until: number | null) => {
    return { group_id, certificate_id, certificate: `{"${certificate_id}":1}`, needed_until };
  };
  expect(rows).toEqual([
    row('g', 'application', 300),
    row('g', 'event', null),
    row('g', 'invite', 800),
    row('g', 'message', 700),
    row('g', 'recovery', 400),
    row('h', 'message', 600),
  ]);
});
