/** `posthouse verify` finds each thing of a backup that is not as the relay stored it. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { backUp, verifyBackup } from '../../relay/src/backup/index.ts';
import { relayMigrations } from '../../relay/src/modules.ts';
import { share } from '../../relay/test/support/chance.ts';
import { club } from './groups/support.ts';
import { befriend } from './support/relay-with-clients.ts';
import { RestorableRelay } from './support/restorable-relay.ts';

let relay: RestorableRelay;
beforeAll(async () => {
  relay = await RestorableRelay.start();
  const { world } = relay;
  const ann = await world.person({ prefer: 'http' });
  const bob = await world.person({ prefer: 'http' });
  await befriend(ann, bob);
  const groupId = await club(ann, [bob]);
  const { id } = await ann.channels.create({ name: 'News' });
  await bob.profiles.publish({ nickname: 'Bob', public_discovery: true });
  for (const text of ['a', 'b', 'c', 'd']) {
    await ann.messages.send(bob.id, { text });
    await ann.groups.send(groupId, { text });
    await ann.channels.send(id, { text });
  }
  await world.stopRelay();
});
afterAll(() => relay[Symbol.asyncDispose]());

/** What is changed in the database, by what SQL, and what is reported. */
const changes: readonly (readonly [name: string, sql: string, expected: readonly string[]])[] = [
  ['nothing', 'UPDATE timeline_gaps SET sequence = 0', []],
  ['a lost envelope', 'DELETE FROM message_envelopes', ['its envelope is missing']],
  ['a lost certificate', 'DELETE FROM group_certificates', ['the certificate of its signer']],
  [
    'a changed message',
    `UPDATE message_envelopes SET envelope = replace(envelope, '"created_at":1', '"created_at":2')`,
    ['envelope: signature does not verify'],
  ],
  [
    'a lost event of a chain',
    'DELETE FROM group_events WHERE sequence > 0',
    ['do not lead to its'],
  ],
  [
    'a changed post',
    `UPDATE channel_events SET payload = replace(payload, '"text":"b"', '"text":"9"')`,
    ['signature does not verify'],
  ],
  [
    'a changed device state',
    `UPDATE device_states SET state = replace(state, '"revision":', '"revision":1')`,
    ['signature does not verify'],
  ],
  [
    'a changed profile',
    `UPDATE profiles SET profile = replace(profile, 'Bob', 'Rupert')`,
    ['signature does not verify'],
  ],
  [
    'a changed route',
    `UPDATE account_routes SET route = replace(route, '"revision":1', '"revision":2')`,
    ['signature does not verify'],
  ],
  ['a lost box of a message', 'DELETE FROM timeline_boxes', ['the box of dev_']],
  ['a lost box of a member', 'DELETE FROM group_boxes', ['the key box of']],
  ['a lost secret of an epoch', 'DELETE FROM group_epochs', ['the secret of its epoch']],
  ['a lost member', "DELETE FROM group_members WHERE role = 'member'", ['its member neo:']],
  [
    'a member with another right',
    "UPDATE group_members SET role = 'administrator' WHERE role = 'member'",
    ['is member by its chain, not administrator'],
  ],
  [
    'a member without an admission',
    "INSERT INTO group_members SELECT group_id, 'mallory', role, member_key, since FROM group_members WHERE role = 'member'",
    ['mallory is no member by its chain'],
  ],
  [
    'a member with another key',
    "UPDATE group_members SET member_key = 'x'",
    ['has another key by its chain'],
  ],
  [
    'a ban without a decision',
    "INSERT INTO group_bans SELECT group_id, 'mallory' FROM groups",
    ['mallory is not banned by its chain'],
  ],
  ['another owner', "UPDATE groups SET owner = 'mallory'", ['its chain has the owner']],
  ['a lowered head', 'UPDATE timeline_heads SET head = 1', ['its head 1 is below its sequence']],
  ['a lost head', 'DELETE FROM timeline_heads', ['the head of its timeline is missing']],
  [
    'a lowered head of a group',
    'UPDATE groups SET sequence = 1',
    ['its head 1 is below its sequence'],
  ],
  [
    'a lowered head of a channel',
    'UPDATE channels SET head = 1',
    ['its head 1 is below its sequence'],
  ],
  [
    'a text that is no JSON',
    "UPDATE profiles SET certificate = 'not json'",
    ['unknown literal at offset 0'],
  ],
  [
    'certificates without their members',
    "UPDATE group_certificates SET certificate = '{}'",
    ['it has not the form that a relay stores'],
  ],
];

/** `npm test` makes some of them. */
const isUsual = (index: number) => index % 5 === 0;
const chosen = changes.filter((_, index) =>
  share === 'all' ? true : isUsual(index) === (share === 'part'),
);

test.each(chosen)('posthouse verify finds %s', async (name, sql, expected) => {
  const data = relay.path(`verify ${name}`);
  const file = relay.path(`backup ${name}`);
  cpSync(relay.path('relay'), data, { recursive: true });
  const database = new DatabaseSync(join(data, 'relay.sqlite'));
  expect(database.prepare(sql).run().changes).toBeGreaterThanOrEqual(expected.length);
  database.close();
  const migrations = relayMigrations;
  const options = { to: file, withKeys: false, migrations, now: 1 };
  await backUp({ config: { ...relay.config, data }, ...options });
  const { checked, problems, problemCount } = await verifyBackup(file, { migrations });
  expect(problemCount > 0).toBe(expected.length > 0);
  for (const why of expected) {
    expect(problems.map((problem) => problem.why).join()).toContain(why);
  }
  expect(checked).toMatchObject({ groups: 1, channels: 1, 'group messages': 4, profiles: 1 });
  expect(checked['timeline records']).toBeGreaterThan(3);
});
