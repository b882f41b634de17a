import { createGroupSecret } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import { accounts } from '../../src/accounts/index.ts';
import { groups } from '../../src/groups/index.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readPage } from '../fixtures/group-reader.ts';
import { Person } from '../fixtures/person.ts';
import { scansAndSorts } from '../support/engine.ts';
import { crashJob } from '../support/faults.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const hour = 3_600;
const week = 604_800;
const month = 2_592_000;
const retention = 10_000;
const wait = 500;

const relay = inProcessRelay({ groupMessageRetention: retention, groupRecoveryWait: wait });
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
  await group.admit(ada, ben, cem);
  await group.setRole(ada, 'administrator');
  relay.takeNotices();
});

const rows = (table: string) => relay.rows(table);
const run = (job: string) => relay.runJob(`groups.${job}`);
const list = async (method: string, key: string, by = ann) => {
  const params = { group_id: group.groupId };
  const answer = await relay.call(method, params, { session: by.session() });
  return ((answer as Record<string, unknown>)[key] as unknown[]).length;
};
const applicationsFor = (...people: readonly Person[]) => ({
  kind: 'group-applications',
  group: group.groupId,
  accounts: people.map(({ account }) => account).sort(),
});
const recoveriesFor = (...people: readonly Person[]) => ({
  ...applicationsFor(...people),
  kind: 'group-recoveries',
});
/** With their recipients in order. */
const notices = () =>
  relay
    .takeNotices()
    .map((notice) =>
      'accounts' in notice ? { ...notice, accounts: notice.accounts.toSorted() } : notice,
    );

const crash = (job: string, commits: number) => crashJob(relay, `groups.${job}`, commits);

describe('05 §15.3: invitations that expire', () => {
  test('with applications, notify owner and administrators once', async () => {
    const invite = await group.invite();
    await group.apply(eve, invite);
    relay.takeNotices();
    relay.clock.advance(invite.expires_at - relay.clock.now() - 1);
    expect(await run('expiry')).toBe(invite.expires_at);
    expect(notices()).toEqual([]);
    expect(await list('group.application.list', 'applications')).toBe(1);
    relay.clock.advance(1);
    await run('expiry');
    expect(notices()).toEqual([applicationsFor(ann, ada)]);
    expect(await list('group.application.list', 'applications')).toBe(0);
    expect(await rows('group_applications')).toEqual([]);
    await run('expiry');
    expect(notices()).toEqual([]);
  });

  test('without applications, publish no notice', async () => {
    await group.invite();
    relay.clock.advance(week);
    await run('expiry');
    expect(notices()).toEqual([]);
  });

  test('several of one group are one notice, each group its own', async () => {
    const other = await TestGroup.create(relay, ben);
    for (const each of [group, other]) {
      await each.apply(eve, await each.invite());
      await each.apply(cem === eve ? cem : ada, await other.invite()).catch(() => {});
    }
    relay.takeNotices();
    relay.clock.advance(week);
    await run('expiry');
    const told = notices();
    expect(told).toHaveLength(2);
    expect(told).toContainEqual(applicationsFor(ann, ada));
    expect(told).toContainEqual({ ...applicationsFor(ben), group: other.groupId });
  });

  test('after a crash between commits no invitation is missed', async () => {
    const others = await Promise.all(['x', 'y', 'z'].map((name) => Person.register(relay, name)));
    const hosts = [];
    for (const person of others) {
      const host = await TestGroup.create(relay, person);
      await host.apply(eve, await host.invite());
      hosts.push(host);
    }
    relay.clock.advance(week);
    await crash('expiry', 1);
    await run('expiry');
    expect(await rows('group_applications')).toEqual([]);
    const live = (await rows('group_invites')).filter((row) => row.live === 1);
    expect(live).toEqual([]);
  });
});

describe('05 §8.1, §20: ended invitations', () => {
  test('applications of a revoked invitation are deleted', async () => {
    const invite = await group.invite();
    await group.apply(eve, invite);
    const params = { group_id: group.groupId, invite_id: invite.invite_id };
    await relay.call('group.invite.revoke', params, { session: ann.session() });
    relay.takeNotices();
    expect(await rows('group_applications')).toHaveLength(1);
    await run('expiry');
    expect(await rows('group_applications')).toEqual([]);
    // Who revoked it told of it.
    expect(notices()).toEqual([]);
    // A second revocation still finds it revoked.
    const again = await relay.codeOf('group.invite.revoke', params, { session: ann.session() });
    expect(again).toBe('state_conflict');
  });

  test('an invitation with more applications than one batch', async () => {
    const invite = await group.invite();
    await relay.context.storage.write('test', async (tx) => {
      for (let count = 0; count < 450; count += 1) {
        await tx.run(
          `INSERT INTO group_applications (group_id, account, invite_id, device_id, certificate_id,
              member_key, digest, accepted_at, bytes, application)
            VALUES (?, ?, ?, 'd', 'c', 'k', 'd', 1, 1, '{}')`,
          group.groupId,
          `applicant ${count}`,
          invite.invite_id,
        );
      }
      await tx.run('UPDATE group_invites SET pending = 450 WHERE invite_id = ?', invite.invite_id);
    });
    relay.clock.advance(week);
    await run('expiry');
    expect(notices()).toEqual([applicationsFor(ann, ada)]);
    expect(await rows('group_applications')).toEqual([]);
    expect(await rows('group_invites')).toMatchObject([{ pending: 0 }, { pending: 0 }]);
  });

  test('an invitation is forgotten a week after its end, whatever ended it', async () => {
    const invite = await group.invite();
    const params = { group_id: group.groupId, invite_id: invite.invite_id };
    await relay.call('group.invite.revoke', params, { session: ann.session() });
    const stored = async () =>
      (await rows('group_invites')).filter((row) => row.invite_id === invite.invite_id).length;
    relay.clock.advance(invite.expires_at + week - relay.clock.now() - 1);
    expect(await run('expiry')).toBe(invite.expires_at + week);
    expect(await stored()).toBe(1);
    relay.clock.advance(1);
    expect(await run('expiry')).toBe(undefined);
    expect(await stored()).toBe(0);
  });
});

describe('05 §9.3, §15.4: recovery requests that expire', () => {
  test('requester, owner and administrators are notified in time', async () => {
    await group.requestRecovery(ben);
    relay.takeNotices();
    relay.clock.advance(wait - 1);
    expect(await run('expiry')).toBe(relay.clock.now() + 1);
    expect(notices()).toEqual([]);
    relay.clock.advance(1);
    await run('expiry');
    expect(notices()).toEqual([recoveriesFor(ann, ada, ben)]);
    expect(await rows('group_recoveries')).toEqual([]);
    await run('expiry');
    expect(notices()).toEqual([]);
  });

  test("an administrator's notifies itself and the owner", async () => {
    await group.requestRecovery(ada);
    relay.takeNotices();
    relay.clock.advance(wait);
    await run('expiry');
    expect(notices()).toEqual([recoveriesFor(ann, ada)]);
  });

  test('several of one group are one notice', async () => {
    for (const person of [ben, cem]) await group.requestRecovery(person);
    relay.takeNotices();
    relay.clock.advance(wait);
    await run('expiry');
    expect(notices()).toEqual([recoveriesFor(ann, ada, ben, cem)]);
  });

  test('only the list changes: keys, intervals and timeline stay', async () => {
    await group.requestRecovery(ben);
    const { group_recoveries: gone, ...before } = await relay.dump();
    expect(gone).toHaveLength(1);
    relay.clock.advance(wait);
    await run('expiry');
    const { group_recoveries: left, ...after } = await relay.dump();
    expect(left).toEqual([]);
    expect(after).toEqual(before);
  });

  test('a request that was replaced meanwhile stays', async () => {
    await group.requestRecovery(ben);
    relay.clock.advance(wait);
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, work) => {
      storage.write = write;
      await group.requestRecovery(ben);
      relay.takeNotices();
      return (await write.call(storage, aggregates, work)) as never;
    };
    await run('expiry');
    expect(notices()).toEqual([]);
    expect(await list('group.member.recovery.list', 'requests')).toBe(1);
  });

  test('a restart before the expiry changes nothing', async () => {
    await group.requestRecovery(ben);
    relay.takeNotices();
    await relay.restart({ groupRecoveryWait: 5 });
    relay.clock.advance(wait - 1);
    await run('expiry');
    expect(notices()).toEqual([]);
    relay.clock.advance(1);
    await run('expiry');
    expect(notices()).toEqual([recoveriesFor(ann, ada, ben)]);
  });
});

describe('05 §13.26: staged rotations that expire', () => {
  const prepare = (secret: Uint8Array) =>
    relay.codeOf('group.secret.rotation.prepare', group.preparation(secret), {
      session: ann.session(),
    });
  const stagedBoxes = async () => {
    const sets = (await rows('group_boxes')).map(({ box_set }) => box_set);
    return sets.filter((set) => set !== 0).length;
  };
  /** Both jobs, in an order in which the boxes stay for a moment. */
  const clear = async () => {
    await run('retention');
    await run('expiry');
    await run('retention');
  };

  test('lose their boxes, in batches, and cannot be committed or begun again', async () => {
    const secret = createGroupSecret(nodeRandom);
    expect(await prepare(secret)).toBe('ok');
    await relay.context.storage.write('test', async (tx) => {
      for (let count = 0; count < 450; count += 1) {
        await tx.run(
          `INSERT INTO group_boxes (group_id, box_set, account, from_epoch, box)
            VALUES (?, 1, ?, 0, '{}')`,
          group.groupId,
          `account ${count}`,
        );
      }
    });
    relay.clock.advance(week - 1);
    await clear();
    expect(await stagedBoxes()).toBe(454);
    relay.clock.advance(1);
    relay.takeNotices();
    await clear();
    expect(await stagedBoxes()).toBe(0);
    expect(await rows('group_dropped_sets')).toEqual([]);
    expect(notices()).toEqual([]);
    expect(await prepare(secret)).toBe('state_conflict');
    const code = await relay.codeOf('group.secret.rotation.commit', group.rotation(secret), {
      session: ann.session(),
    });
    expect(code).toBe('state_conflict');
    // The boxes in force are whole, and another rotation is not harmed.
    expect((await readPage(relay, group, ben)).keys).toHaveLength(1);
    await group.rotate();
    relay.clock.advance(week);
    await clear();
    expect((await readPage(relay, group, ben)).keys.at(-1)?.epoch).toBe(2);
  });

  test('end once in time, also if members leave meanwhile', async () => {
    expect(await prepare(createGroupSecret(nodeRandom))).toBe('ok');
    relay.clock.advance(week);
    await run('expiry');
    await group.remove([cem]);
    await clear();
    expect(await stagedBoxes()).toBe(0);
    expect(await rows('group_stagings')).toMatchObject([{ cleared: 1, box_count: 3 }]);
    const before = await relay.dump();
    await run('expiry');
    expect(await relay.dump()).toEqual(before);
    expect(await prepare(createGroupSecret(nodeRandom))).toBe('ok');
    relay.clock.advance(week);
    await clear();
    expect(await stagedBoxes()).toBe(0);
  });

  test('end in a closed group too', async () => {
    expect(await prepare(createGroupSecret(nodeRandom))).toBe('ok');
    await group.close();
    relay.clock.advance(week);
    await clear();
    expect(await stagedBoxes()).toBe(0);
  });
});

test('a write that stores something with an end wakes the job', async () => {
  const woken: string[] = [];
  relay.context.jobs.wake = (name) => woken.push(name);
  await group.invite();
  await group.requestRecovery(ben);
  await group.rotate();
  expect(woken).toEqual(['groups.expiry', 'groups.expiry', 'groups.expiry']);
  expect(groups.jobs.map(({ name }) => name)).toContain('groups.expiry');
});

describe('05 §11.2: messages', () => {
  test('are deleted with their results when the retention of their acceptance ends', async () => {
    await group.send(ben, 1);
    relay.clock.advance(hour);
    const last = await group.send(ben, 1);
    await relay.restart({ groupMessageRetention: 10 });
    relay.clock.advance(retention - hour - 1);
    expect(await run('retention')).toBe(relay.clock.now() + 1);
    expect(await rows('group_messages')).toHaveLength(2);
    relay.clock.advance(1);
    await run('retention');
    expect(await rows('group_messages')).toMatchObject([{ sequence: last }]);
    expect(await rows('group_sent')).toMatchObject([{ sequence: last }]);
    relay.clock.advance(hour);
    await run('retention');
    expect(await rows('group_messages')).toEqual([]);
    expect(await rows('group_sent')).toEqual([]);
  });

  test('management events, certificates, head and the rest of the group stay', async () => {
    await group.send(ben, 1);
    const { group_messages, group_sent, ...before } = await relay.dump();
    expect(group_messages).toHaveLength(1);
    expect(group_sent).toHaveLength(1);
    relay.clock.advance(retention);
    // The first epoch was superseded, and goes with them.
    await run('retention');
    const { group_messages: left, group_sent: results, ...after } = await relay.dump();
    expect([left, results]).toEqual([[], []]);
    for (const table of ['group_events', 'group_certificates', 'group_intervals']) {
      expect(after[table]).toEqual(before[table]);
    }
    const [stored] = before.groups ?? [];
    const stored_bytes = expect.any(Number);
    expect(after.groups).toEqual([{ ...(stored as object), stored_bytes }]);
    const sequence = await group.send(ben, 1);
    expect(sequence).toBe(4);
  });

  test('are deleted in several batches', async () => {
    await relay.context.storage.write('test', async (tx) => {
      for (let sequence = 100; sequence < 550; sequence += 1) {
        await tx.run(
          `INSERT INTO group_messages (group_id, sequence, epoch, accepted_at, keep_until,
              signer_device_id, certificate_id, bytes, payload)
            VALUES (?, ?, 1, 1, 2, 'd', 'c', 2, '{}')`,
          group.groupId,
          sequence,
        );
      }
    });
    await run('retention');
    expect(await rows('group_messages')).toEqual([]);
  });
});

describe('05 §11.3: keys', () => {
  const epochs = async () => (await rows('group_epochs')).map(({ epoch }) => epoch);
  const boxSets = async () => [...new Set((await rows('group_boxes')).map((row) => row.box_set))];

  test('a superseded epoch is deleted within the hour after its last message', async () => {
    relay.clock.advance(hour);
    await group.send(ben, 1);
    await group.remove([cem]);
    relay.clock.advance(retention - hour);
    await run('retention');
    // Epoch 0 had no message; the message of epoch 1 is an hour younger.
    expect(await epochs()).toEqual([1, 2]);
    const page = await readPage(relay, group, ben);
    expect(page.keys.map(({ epoch }) => epoch)).toEqual([1, 2]);
    relay.clock.advance(hour);
    await run('retention');
    expect(await rows('group_messages')).toEqual([]);
    relay.clock.advance(hour);
    await run('retention');
    expect(await epochs()).toEqual([2]);
    expect((await readPage(relay, group, ben)).keys.map(({ epoch }) => epoch)).toEqual([2]);
  });

  test('a lowered retention deletes no epoch of messages with a longer promise', async () => {
    await group.send(ben, 1);
    await relay.restart({ groupMessageRetention: hour });
    await group.send(ben, 1);
    await group.remove([cem]);
    relay.clock.advance(2 * hour);
    await run('retention');
    expect(await rows('group_messages')).toHaveLength(1);
    const page = await readPage(relay, group, ben);
    expect(page.keys.map(({ epoch }) => epoch)).toEqual([1, 2]);
  });

  test('the current epoch stays, however old it is', async () => {
    relay.clock.advance(100 * retention);
    expect(await run('retention')).toBe(undefined);
    expect(await epochs()).toEqual([1]);
    expect((await readPage(relay, group, ben)).keys).toHaveLength(1);
  });

  test('boxes are deleted with the last epoch that used them; every member keeps one', async () => {
    await group.rotate();
    await group.remove([cem]);
    expect(await boxSets()).toHaveLength(2);
    relay.clock.advance(retention);
    await run('retention');
    expect(await epochs()).toEqual([3]);
    const [inForce] = (await rows('groups')).map(({ box_set }) => box_set);
    expect(await boxSets()).toEqual([inForce]);
    expect(await rows('group_dropped_sets')).toEqual([]);
    for (const person of [ann, ada, ben]) {
      expect((await readPage(relay, group, person)).keys).toHaveLength(1);
    }
  });

  test('all boxes of a dropped set are deleted, in one full batch or several', async () => {
    const { storage } = relay.context;
    for (const [boxSet, count] of [
      [7, 200],
      [8, 401],
    ] as const) {
      await storage.write('test', async (tx) => {
        for (let each = 0; each < count; each += 1) {
          await tx.run(
            `INSERT INTO group_boxes (group_id, box_set, account, from_epoch, box)
              VALUES (?, ?, ?, 0, 'box')`,
            group.groupId,
            boxSet,
            `account ${each}`,
          );
        }
        const dropped = 'INSERT INTO group_dropped_sets (group_id, box_set) VALUES (?, ?)';
        await tx.run(dropped, group.groupId, boxSet);
      });
    }
    await run('retention');
    expect(await rows('group_dropped_sets')).toEqual([]);
    expect((await rows('group_boxes')).filter(({ box_set }) => box_set !== 0)).toEqual([]);
  });

  test('a staged rotation keeps its boxes, a replaced rotation loses them', async () => {
    const prepare = () =>
      relay.call(
        'group.secret.rotation.prepare',
        group.preparation(createGroupSecret(nodeRandom), [ann, ben]),
        { session: ann.session() },
      );
    await prepare();
    await prepare();
    expect(await boxSets()).toHaveLength(3);
    await run('retention');
    const [staging] = (await rows('group_stagings')) as [{ box_set: number }];
    const [inForce] = (await rows('groups')).map(({ box_set }) => box_set);
    expect((await boxSets()).sort()).toEqual([inForce, staging.box_set].sort());
    relay.clock.advance(retention);
    await run('retention');
    expect(await boxSets()).toContain(staging.box_set);
  });

  test('epochs that expire out of order leave no box', async () => {
    await group.rotate();
    await group.rotate();
    await group.remove([cem]);
    const until = async (epoch: number, time: number) =>
      relay.context.storage.write('test', (tx) =>
        tx.run('UPDATE group_epochs SET keep_until = ? WHERE epoch = ?', time, epoch),
      );
    const now = relay.clock.now();
    for (const [epoch, time] of [
      [0, 0],
      [1, 900],
      [2, 100],
      [3, 900],
    ] as const) {
      await until(epoch, now + time);
    }
    relay.clock.advance(100);
    await run('retention');
    expect(await epochs()).toEqual([1, 3, 4]);
    expect(await boxSets()).toHaveLength(3);
    relay.clock.advance(800);
    await run('retention');
    expect(await epochs()).toEqual([4]);
    expect(await boxSets()).toHaveLength(1);
  });

  test('after a crash between any two commits the next run deletes the rest', async () => {
    await group.send(ben, 1);
    await group.rotate();
    await group.remove([cem]);
    relay.clock.advance(retention + hour);
    for (let commits = 0; commits < 4; commits += 1) await crash('retention', commits);
    await run('retention');
    expect(await rows('group_messages')).toEqual([]);
    expect(await epochs()).toEqual([3]);
    expect(await boxSets()).toHaveLength(1);
  });

  test('two concurrent processes do nothing twice', async () => {
    await group.rotate();
    await group.apply(eve, await group.invite());
    await group.requestRecovery(ben);
    relay.takeNotices();
    relay.clock.advance(week);
    await Promise.all(['retention', 'expiry', 'retention', 'expiry'].map(run));
    expect(notices()).toEqual([applicationsFor(ann, ada), recoveriesFor(ann, ada, ben)]);
    expect(await epochs()).toEqual([2]);
  });
});

test('no statement of the jobs scans a whole table or sorts', async () => {
  await group.send(ben, 1);
  await group.rotate();
  await group.apply(eve, await group.invite());
  await group.requestRecovery(ben);
  await readPage(relay, group, cem);
  await cem.addDevice('laptop', { expiresAt: relay.clock.now() + 1 });
  await cem.publishState(await cem.state({ devices: ['laptop'] }));
  relay.clock.advance(month);
  const statements = new Set<string>();
  relay.faults.beforeStatement = (sql) => void statements.add(sql);
  for (const { jobs } of [accounts, groups]) for (const { name } of jobs) await relay.runJob(name);
  delete relay.faults.beforeStatement;
  const { storage } = relay.context;
  const found: Record<string, string[]> = {};
  for (const sql of [...statements].filter((each) => /^\s*(SELECT|UPDATE|DELETE)/.test(each))) {
    const slow = await scansAndSorts(storage, sql);
    if (slow.length > 0) found[sql] = slow;
  }
  expect(found).toEqual({});
  expect(statements.size).toBeGreaterThan(25);
});
