import { expect, test } from 'vitest';
import { groups } from '../../src/groups/index.ts';
import { TestGroup } from '../fixtures/group.ts';
import { newMemberKey } from '../fixtures/member-key.ts';
import { Person } from '../fixtures/person.ts';
import { scansAndSorts } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();

test('no statement of any method or job scans a whole table or sorts', async () => {
  const ann = await Person.register(relay, 'ann');
  const ben = await Person.register(relay, 'ben', ['phone', 'laptop']);
  const cem = await Person.register(relay, 'cem');
  const statements = new Set<string>();
  relay.faults.beforeStatement = (sql) => void statements.add(sql);
  await live(ann, ben, cem);
  delete relay.faults.beforeStatement;
  const tables = /\bgroup(?:s|_\w+)\b/;
  const found: Record<string, string[]> = {};
  const searching = [...statements].filter(
    (sql) => tables.test(sql) && /\bWHERE\b|^\s*SELECT/.test(sql) && !/^\s*INSERT/.test(sql),
  );
  for (const sql of searching) {
    const slow = await scansAndSorts(relay.context.storage, sql);
    if (slow.length > 0) found[sql] = slow;
  }
  expect(found).toEqual({});
  expect(searching.length).toBeGreaterThan(50);
});

/** Every method but `group.subscribe`, and every job, each at least once. */
async function live(ann: Person, ben: Person, cem: Person): Promise<void> {
  const group = await TestGroup.create(relay, ann);
  const { groupId: group_id } = group;
  const as = (person: Person, method: string, facts: object = {}, device = 'phone') =>
    relay.call(`group.${method}`, { group_id, ...facts }, { session: person.session(device) });
  await group.update({ invite_policy: 'members_shareable' });
  await group.admit(ben, cem);
  await group.setRole(ben, 'administrator');
  const { invite_id } = await group.invite({}, { by: cem });
  for (const person of [ben, cem]) await as(person, 'invite.list', { limit: 1 });
  await as(ben, 'invite.resolve', { invite_id });
  await as(cem, 'resolve', { invite_id });
  await group.leave(cem);
  await group.apply(cem, { invite_id });
  await as(ben, 'application.list', { limit: 1 });
  await as(ben, 'application.reject', { accounts: [cem.account] });
  await group.apply(cem, { invite_id });
  await group.approve([cem]);
  await group.requestRecovery(cem);
  for (const person of [ann, ben, cem]) await as(person, 'member.recovery.list', { limit: 1 });
  await group.recover([cem]);
  await group.requestRecovery(cem);
  await as(cem, 'member.recovery.reject', { accounts: [cem.account] });
  const other = group.preparation(newMemberKey().privateKey);
  await relay.call('group.secret.rotation.prepare', other, { session: ann.session() });
  await group.rotate();
  await group.send(cem, 5);
  await as(ben, 'sync', { limit: 1 }, 'laptop');
  await as(ben, 'key.sync', { limit: 1 }, 'laptop');
  await as(ben, 'invite.revoke', { invite_id }, 'phone').catch(() => {});
  await as(ann, 'invite.revoke', { invite_id });
  await group.invite({ expires_at: relay.clock.now() + 1 });
  await group.requestRecovery(cem);
  await ben.publishState(await ben.state({ devices: ['phone'] }));
  for (const { name } of groups.jobs) await relay.runJob(name);
  await group.remove([cem]);
  await group.ban([cem]);
  await group.unban([cem]);
  await group.transfer(ben);
  relay.clock.advance(86_400 * 60);
  for (const { name } of groups.jobs) await relay.runJob(name);
  group.owner = ben;
  await group.close();
}
