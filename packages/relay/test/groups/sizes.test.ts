/** What grows with members, epochs and time must not be compared or looked at again and again. */
import { beforeEach, expect, test } from 'vitest';
import { endAccess, readIntervals } from '../../src/groups/chain/access-store.ts';
import { recoveriesNotice } from '../../src/groups/chain/notices.ts';
import { deleteExpiredEpochs } from '../../src/groups/upkeep/retention-store.ts';
import type { Writer } from '../../src/storage/types.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const retention = 10_000;
const relay = inProcessRelay({ groupMessageRetention: retention });
const ann = relay.person('ann');
const ben = relay.person('ben');
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
});

const write = <T>(work: (tx: Writer) => Promise<T>) =>
  relay.context.storage.write(`group:${group.groupId}`, work);

test('05 §15.4: many administrators are not compared with each of many requests', async () => {
  const people: Person[] = [];
  for (let count = 0; count < 6; count += 1) {
    people.push(await Person.register(relay, `administrator ${count}`));
  }
  await group.admit(...people);
  for (const person of people) await group.setRole(person, 'administrator');
  let looks = 0;
  const requesters = people.slice(0, 4).map(({ account }) => ({
    account,
    isMember: false,
    get role() {
      looks += 1;
      return 'administrator' as const;
    },
  }));
  const notice = await write((tx) => recoveriesNotice(tx, group.groupId, requesters));
  const accounts = 'accounts' in notice ? notice.accounts.toSorted() : [];
  const viewers = [ann, ...people.slice(0, 4)].map(({ account }) => account);
  expect({ ...notice, accounts }).toEqual({
    ...{ kind: 'group-recoveries', group: group.groupId },
    accounts: viewers.toSorted(),
  });
  expect(looks).toBe(requesters.length);
});

test('05 §11.3: each set of boxes is dropped once, however many deletions of epochs follow', async () => {
  for (let count = 0; count < 3; count += 1) await group.rotate();
  relay.clock.advance(retention);
  const now = relay.clock.now();
  const dropped: number[] = [];
  for (let deletion = 0; deletion < 3; deletion += 1) {
    let count = 0;
    relay.faults.beforeStatement = (sql) => {
      if (/INSERT INTO group_dropped_sets/.test(sql)) count += 1;
    };
    await write((tx) => deleteExpiredEpochs(tx, group.groupId, { now, batchSize: 1 }));
    dropped.push(count);
  }
  delete relay.faults.beforeStatement;
  expect(dropped).toEqual([1, 1, 1]);
  expect(await relay.rows('group_dropped_sets')).toHaveLength(3);
});

test('05 §10.3: access that ended is not read or changed again, however often an account returns', async () => {
  for (let count = 0; count < 3; count += 1) {
    await group.admit(ben);
    await group.leave(ben);
  }
  await group.admit(ben);
  const { account } = ben;
  const { deviceId } = ben.device();
  expect(
    (await relay.rows('group_intervals')).filter((row) => row.account === account),
  ).toHaveLength(4);
  const changed: number[] = [];
  const read = await write(async (tx) => {
    const found = await readIntervals(tx, group.groupId, { account, deviceId });
    const counting = {
      run: async (...statement: Parameters<Writer['run']>) => {
        changed.push(await tx.run(...statement));
        return changed.at(-1) ?? 0;
      },
    };
    const at = { sequence: 9, epoch: 9 };
    await endAccess(counting as Writer, group.groupId, { account, at });
    return found;
  });
  expect({ read: read.length, changed }).toEqual({ read: 1, changed: [1] });
});
