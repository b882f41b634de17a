/** 05: a failing group does not delay the deadlines of other groups. */
import { beforeEach, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { readPage } from '../fixtures/group-reader.ts';
import { Person } from '../fixtures/person.ts';
import { breakOwner } from '../support/faults.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const week = 604_800;
const retention = 10_000;
const wait = 500;
const pauses = [1, 5, 30, 300, 300];

const relay = inProcessRelay({ groupMessageRetention: retention, groupRecoveryWait: wait });
let ann: Person;
let ben: Person;
let eve: Person;
let broken: TestGroup;
let others: TestGroup[];
/** Log entries of groups that failed. */
let logged: Record<string, unknown>[];

beforeEach(async () => {
  [ann, ben, eve] = (await Promise.all([
    Person.register(relay, 'ann'),
    Person.register(relay, 'ben', ['phone', 'laptop']),
    Person.register(relay, 'eve'),
  ])) as [Person, Person, Person];
  const groups = [];
  for (let count = 0; count < 3; count += 1) {
    const group = await TestGroup.create(relay, ann);
    await group.admit(ben);
    groups.push(group);
  }
  // The first and the last in the order of IDs, in which groups are processed.
  [broken, ...others] = groups.sort((a, b) => (a.groupId < b.groupId ? -1 : 1)) as [
    TestGroup,
    ...TestGroup[],
  ];
  logged = [];
  relay.context.log.error = ((facts: Record<string, unknown>) => logged.push(facts)) as never;
});

const rowsOf = async (table: string) => {
  const rows = (await relay.dump())[table] as { group_id: string }[];
  return rows.filter(({ group_id }) => group_id === broken.groupId);
};
const rowsElsewhere = async (table: string) => {
  const rows = (await relay.dump())[table] as { group_id: string }[];
  return rows.filter(({ group_id }) => group_id !== broken.groupId);
};
const breakGroup = () => breakOwner(relay, `group:${broken.groupId}`);

test('05 §15.3: invitations of the other groups end, and their lists are notified', async () => {
  for (const group of [broken, ...others]) await group.apply(eve, await group.invite());
  relay.clock.advance(5 * week);
  relay.takeNotices();
  {
    using _fault = breakGroup();
    await relay.runJob('groups.expiry');
  }
  const told = (by: TestGroup[]) => by.map(({ groupId }) => groupId).sort();
  const groups = () => relay.takeNotices().map((notice) => 'group' in notice && notice.group);
  expect(groups().sort()).toEqual(told(others));
  expect(await rowsElsewhere('group_applications')).toEqual([]);
  expect(await rowsOf('group_applications')).toHaveLength(1);
  relay.clock.advance(1);
  await relay.runJob('groups.expiry');
  expect(groups()).toEqual([broken.groupId]);
  expect(await rowsOf('group_applications')).toEqual([]);
});

test('deadlines of the other groups are met, however much is due in the failing one', async () => {
  await relay.context.storage.write('test', async (tx) => {
    for (let count = 0; count < 450; count += 1) {
      await tx.run(
        `INSERT INTO group_recoveries (group_id, account, device_id, certificate_id, accepted_at,
            expires_at, member_key, digest, bytes, request)
          VALUES (?, ?, 'd', 'c', 0, 1, 'k', 'd', 2, '{}')`,
        broken.groupId,
        `account ${count}`,
      );
    }
  });
  for (const group of others) await group.requestRecovery(ben);
  relay.clock.advance(wait);
  using _fault = breakGroup();
  await relay.runJob('groups.expiry');
  expect(await rowsElsewhere('group_recoveries')).toEqual([]);
  expect(await rowsOf('group_recoveries')).toHaveLength(450);
});

test('05 §11.3: expired epochs and boxes of the other groups are deleted', async () => {
  for (const group of [broken, ...others]) await group.rotate();
  relay.clock.advance(retention);
  const { group_epochs } = await relay.dump();
  expect(group_epochs).toHaveLength(9);
  using _fault = breakGroup();
  await relay.runJob('groups.retention');
  expect(await rowsElsewhere('group_epochs')).toHaveLength(2);
  expect(await rowsElsewhere('group_dropped_sets')).toEqual([]);
  expect(await rowsOf('group_epochs')).toHaveLength(3);
});

test('05 §7.3: relay secrets that a removed device held are rotated in the other groups', async () => {
  for (const group of [broken, ...others]) await readPage(relay, group, ben, { device: 'laptop' });
  await ben.publishState(await ben.state({ devices: ['phone'] }));
  const job = 'accounts.inactive-devices';
  {
    using _fault = breakGroup();
    expect(await relay.runJob(job)).toBe(relay.clock.now() + 1);
  }
  const epochs = async () => {
    const groups = (await relay.rows('groups')) as { group_id: string; epoch: number }[];
    return groups.map(({ group_id, epoch }) => [group_id === broken.groupId, epoch]).sort();
  };
  expect(await epochs()).toEqual([
    [false, 2],
    [false, 2],
    [true, 1],
  ]);
  // The device stays noted until its access has ended everywhere.
  expect(await relay.rows('inactive_devices')).toHaveLength(1);
  relay.clock.advance(1);
  expect(await relay.runJob(job)).toBe(undefined);
  expect(await epochs()).toContainEqual([true, 2]);
  expect(await relay.rows('inactive_devices')).toEqual([]);
});

test("03: one failing account does not delay the expiry of other accounts' certificates", async () => {
  const job = 'accounts.expired-devices';
  const expiry = (await relay.rows('devices')) as { expires_at: number }[];
  relay.clock.advance(Math.max(...expiry.map(({ expires_at }) => expires_at)) - relay.clock.now());
  using _fault = breakOwner(relay, `account:${ann.account}`);
  await relay.runJob(job);
  const noted = (await relay.rows('inactive_devices')) as { account: string }[];
  expect(noted.map(({ account }) => account).sort()).toEqual(
    [ben.account, ben.account, eve.account].sort(),
  );
});

test('the failing group is retried after growing pauses, each attempt is logged once', async () => {
  await broken.requestRecovery(ben);
  relay.clock.advance(wait);
  using _fault = breakGroup();
  const attempts = [];
  for (const pause of pauses) {
    expect(await relay.runJob('groups.expiry')).toBe(relay.clock.now() + pause);
    attempts.push({
      job: 'groups.expiry',
      task: 'recovery',
      owner: `group:${broken.groupId}`,
      retryInSeconds: pause,
      err: new Error('fault of the test'),
    });
    expect(logged).toEqual(attempts);
    // A run in between, woken by something else, leaves it alone.
    relay.clock.advance(pause - 1);
    if (pause > 1) expect(await relay.runJob('groups.expiry')).toBe(relay.clock.now() + 1);
    expect(logged).toEqual(attempts);
    relay.clock.advance(1);
  }
  expect(relay.context.metrics.value('job_tasks_failed', { job: 'groups.expiry' })).toBe(5);
});

test('after a success the pauses begin again, and nothing is left to retry', async () => {
  const run = () => relay.runJob('groups.expiry');
  await broken.requestRecovery(ben);
  relay.clock.advance(wait);
  {
    using _fault = breakGroup();
    await run();
    relay.clock.advance(1);
    expect(await run()).toBe(relay.clock.now() + 5);
  }
  relay.clock.advance(5);
  const nextInvite = await run();
  expect(nextInvite).toBeGreaterThan(relay.clock.now() + 300);
  await broken.requestRecovery(ben);
  relay.clock.advance(wait);
  using _fault = breakGroup();
  expect(await run()).toBe(relay.clock.now() + 1);
});

test('a task that another call has done meanwhile is not retried for ever', async () => {
  await broken.requestRecovery(ben);
  relay.clock.advance(wait);
  {
    using _fault = breakGroup();
    await relay.runJob('groups.expiry');
  }
  await broken.requestRecovery(ben);
  relay.clock.advance(1);
  expect(await relay.runJob('groups.expiry')).toBe(relay.clock.now() + wait - 1);
});
