import { beforeEach, describe, expect, test, vi } from 'vitest';
import { expiredDevicesJob } from '../../src/accounts/jobs.ts';
import type { Notice } from '../../src/dispatch/notice.ts';
import { ClockGuard } from '../../src/jobs/clock-guard.ts';
import { JobRunner } from '../../src/jobs/runner.ts';
import { beforeWrite } from '../fixtures/before-write.ts';
import { Connections } from '../fixtures/connections.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readChain, readPage } from '../fixtures/group-reader.ts';
import { Person } from '../fixtures/person.ts';
import { crashJob } from '../support/faults.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';
import { patience } from '../support/patience.ts';

const ended = 'accounts.inactive-devices';
const expired = 'accounts.expired-devices';
const month = 2_592_000;

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop']);
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
  relay.takeNotices();
});

const rows = (table: string) => relay.rows(table);
const syncAs = async (person: Person, device: string, of = group) => {
  const params = { group_id: of.groupId };
  return await relay.call('group.sync', params, { session: person.session(device) });
};
const takeKeys = (person: Person, device: string, of = group) =>
  readPage(relay, of, person, { device });
/** The state of ben's account has these devices from now on. */
const keep = async (...devices: string[]) => ben.publishState(await ben.state({ devices }));
const intervals = async (device: string, of = group) =>
  (await rows('group_intervals'))
    .filter((row) => row.device_id === ben.device(device).deviceId && row.group_id === of.groupId)
    .map(({ message_from, message_to, key_from, key_to, authority }) => ({
      messages: [message_from, message_to],
      keys: [key_from, key_to],
      authority,
    }));
/** Other relays may have asked for a device. */
const hints = 'accounts.status-hints';
const position = async (of = group) => {
  const all = await rows('groups');
  const { sequence, epoch } = all.find((row) => row.group_id === of.groupId) as never;
  return { sequence, epoch };
};
const noted = async () => (await rows('inactive_devices')).map(({ device_id }) => device_id);
const groupNotices = () =>
  relay.takeNotices().filter((notice): notice is Notice & { group: string } => 'group' in notice);

describe('05 §7.3: a removed device', () => {
  test('is noted in the commit that removes it, and the job is woken', async () => {
    const woken: string[] = [];
    relay.context.jobs.wake = (name) => woken.push(name);
    await keep('phone');
    expect(await noted()).toEqual([ben.device('laptop').deviceId]);
    // Certificates may end at other times than before.
    expect(woken).toEqual([ended, expired, hints]);
    woken.length = 0;
    await keep('phone');
    expect(woken).toEqual([expired, hints]);
  });

  test('a commit that fails notes nothing', async () => {
    relay.faults.beforeCommit = () => {
      throw new Error('fault of the test');
    };
    await expect(keep('phone')).rejects.toHaveProperty('code', 'internal_error');
    delete relay.faults.beforeCommit;
    expect(await noted()).toEqual([]);
  });

  test('without the current relay secret: only its interval closes', async () => {
    await syncAs(ben, 'laptop');
    await group.update({ name: 'later' });
    await keep('phone');
    relay.takeNotices();
    const before = await position();
    await relay.runJob(ended);
    expect(await intervals('laptop')).toEqual([{ messages: [2, 2], keys: [1, 1], authority: 1 }]);
    expect(await position()).toEqual(before);
    expect(groupNotices()).toEqual([]);
    expect(await noted()).toEqual([]);
  });

  test('with the current relay secret: a new secret, an epoch, an unsigned event and a hint', async () => {
    await takeKeys(ben, 'laptop');
    await takeKeys(ben, 'phone');
    const { state: before } = await readChain(relay, group, ann);
    await keep('phone');
    relay.takeNotices();
    await relay.runJob(ended);
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
    expect(await intervals('laptop')).toEqual([{ messages: [2, 1], keys: [1, 1], authority: 1 }]);
    expect(groupNotices()).toEqual([
      { kind: 'group-timeline', group: group.groupId, head: 2, accessEnded: 2 },
    ]);
    // Clients verify the same chain as before.
    const { state } = await readChain(relay, group, ann);
    expect(state.head).toBe(before.head);
    expect([state.sequence, state.epoch]).toEqual([2, 2]);
    const [, secret] = (await takeKeys(ben, 'phone')).keys;
    expect(secret?.epoch).toBe(2);
    const secrets = (await rows('group_epochs')).map(({ relay_secret }) => relay_secret);
    expect(new Set(secrets).size).toBe(3);
    const [event] = (await rows('group_events')).slice(-1);
    expect(event).toMatchObject({
      signer_device_id: null,
      payload: '{"$type":"svc.group.key.rotated"}',
    });
    // Others go on as before, with the new epoch.
    await group.update({ name: 'on' });
    expect(await group.send(ann, 2)).toBe(4);
  });

  test('with an old relay secret only: nothing is rotated', async () => {
    await takeKeys(ben, 'laptop');
    const cem = await Person.register(relay, 'cem');
    await group.admit(cem);
    const before = await position();
    await keep('phone');
    await relay.runJob(ended);
    expect(await position()).toEqual(before);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, before.sequence] }]);
  });

  test('ends in every group in which it has an interval, and in no other', async () => {
    const others: TestGroup[] = [];
    for (let count = 0; count < 3; count += 1) {
      const other = await TestGroup.create(relay, ann);
      await other.admit(ben);
      others.push(other);
    }
    const [held, synced, untouched] = others as [TestGroup, TestGroup, TestGroup];
    await takeKeys(ben, 'laptop', held);
    await syncAs(ben, 'laptop', synced);
    await keep('phone');
    await relay.runJob(ended);
    expect(await position(held)).toEqual({ sequence: 2, epoch: 2 });
    expect(await position(synced)).toEqual({ sequence: 1, epoch: 1 });
    expect(await position(untouched)).toEqual({ sequence: 1, epoch: 1 });
    expect(await intervals('laptop', synced)).toMatchObject([{ messages: [2, 1] }]);
    expect(await intervals('phone', held)).toMatchObject([{ messages: [1, null] }]);
  });

  test('several removed devices rotate a group once', async () => {
    await takeKeys(ben, 'laptop');
    await takeKeys(ben, 'phone');
    await ben.addDevice('tablet');
    await keep('phone', 'laptop', 'tablet');
    await keep('tablet');
    await relay.runJob(ended);
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
    for (const device of ['phone', 'laptop']) {
      expect(await intervals(device)).toMatchObject([{ keys: [1, expect.any(Number)] }]);
    }
  });

  test('appends nothing to a closed group', async () => {
    await takeKeys(ben, 'laptop');
    await group.close();
    const before = await position();
    await keep('phone');
    await relay.runJob(ended);
    expect(await position()).toEqual(before);
    expect(await noted()).toEqual([]);
  });

  test('02 §7.2: loses its interval also if no sequence is left', async () => {
    await takeKeys(ben, 'laptop');
    const last = Number.MAX_SAFE_INTEGER;
    await relay.context.storage.write('test', (tx) =>
      tx.run('UPDATE groups SET sequence = ?', last),
    );
    await keep('phone');
    await relay.runJob(ended);
    expect(await position()).toEqual({ sequence: last, epoch: 1 });
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, last] }]);
    expect(await noted()).toEqual([]);
  });

  test('has nothing left to end after its account left', async () => {
    await takeKeys(ben, 'laptop');
    await group.leave(ben);
    const before = await position();
    await keep('phone');
    await relay.runJob(ended);
    expect(await position()).toEqual(before);
    expect(await intervals('laptop')).toMatchObject([{ authority: 0 }]);
  });
});

describe('05 §10.3: a device that is valid again', () => {
  test('begins a new interval if its access had ended', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    await relay.runJob(ended);
    await group.send(ann, 2);
    await keep('phone', 'laptop');
    expect(await intervals('laptop')).toHaveLength(1);
    await syncAs(ben, 'laptop');
    expect(await intervals('laptop')).toEqual([
      { messages: [2, 1], keys: [1, 1], authority: 1 },
      { messages: [4, null], keys: [2, null], authority: 1 },
    ]);
    await relay.runJob(ended);
    expect(await intervals('laptop')).toMatchObject([{}, { messages: [4, null] }]);
  });

  test('keeps its interval if it was renewed without a gap', async () => {
    await takeKeys(ben, 'laptop');
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + 10 * month });
    await keep('phone', 'laptop');
    expect(await noted()).toEqual([]);
    await relay.runJob(ended);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, null] }]);
  });

  test('keeps its interval if nothing was revoked yet, and is no longer noted', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    await keep('phone', 'laptop');
    const before = await position();
    await relay.runJob(ended);
    expect(await position()).toEqual(before);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, null] }]);
    expect(await noted()).toEqual([]);
  });

  test('keeps its access in the groups that the job has not reached yet', async () => {
    const second = await TestGroup.create(relay, ann);
    await second.admit(ben);
    for (const each of [group, second]) await syncAs(ben, 'laptop', each);
    await keep('phone');
    const { storage } = relay.context;
    const { write } = storage;
    let writes = 0;
    storage.write = async (aggregates, work) => {
      writes += 1;
      if (writes === 2) await keep('phone', 'laptop');
      return (await write.call(storage, aggregates, work)) as never;
    };
    await relay.runJob(ended);
    storage.write = write;
    const open = (await Promise.all([group, second].map((each) => intervals('laptop', each))))
      .flat()
      .filter(({ messages }) => messages[1] === null);
    expect(open).toHaveLength(1);
    expect(await noted()).toEqual([]);
  });
});

describe('05 §10.3: a call before the job has run', () => {
  const seen = async () => {
    const { events } = (await syncAs(ben, 'laptop')) as { events: { sequence: number }[] };
    return events.map(({ sequence }) => sequence);
  };

  test('sends a message that the device cannot read, also when it is valid again', async () => {
    await syncAs(ben, 'laptop');
    await keep('phone');
    expect(await group.send(ann, 1)).toBe(2);
    await keep('phone', 'laptop');
    expect(await seen()).toEqual([0, 1]);
    expect(await intervals('laptop')).toMatchObject([
      { messages: [2, 1], keys: [1, 1] },
      { messages: [3, null], keys: [1, null] },
    ]);
    await relay.runJob(ended);
    expect(await group.send(ann, 1)).toBe(3);
    expect(await seen()).toEqual([0, 1, 3]);
  });

  test('comes after the rotation, if the device holds the secret', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    relay.takeNotices();
    await expect(group.send(ann, 1)).rejects.toHaveProperty('code', 'state_conflict');
    expect(groupNotices()).toEqual([
      { kind: 'group-timeline', group: group.groupId, head: 2, accessEnded: 2 },
    ]);
    expect(await group.send(ann, 2)).toBe(3);
    await keep('phone', 'laptop');
    expect(await seen()).toEqual([0, 1, 2]);
  });

  test.each(['group.sync', 'group.key.sync', 'group.resolve'])(
    '%s ends stale access first',
    async (method) => {
      await takeKeys(ben, 'laptop');
      await keep('phone');
      await relay.call(method, { group_id: group.groupId }, { session: ann.session() });
      expect(await position()).toEqual({ sequence: 2, epoch: 2 });
      expect(await noted()).toHaveLength(1);
      await relay.runJob(ended);
      expect(await position()).toEqual({ sequence: 2, epoch: 2 });
      expect(await noted()).toEqual([]);
    },
  );

  test('comes after the end of all devices, and one rotation', async () => {
    const cem = await Person.register(relay, 'cem');
    await group.admit(cem);
    for (const device of ['phone', 'laptop']) await takeKeys(ben, device);
    await takeKeys(cem, 'phone');
    await keep();
    await cem.publishState(await cem.state({ devices: [] }));
    expect(await readChain(relay, group, ann)).toMatchObject({ state: { sequence: 3, epoch: 3 } });
    const open = (await rows('group_intervals')).filter(({ message_to }) => message_to === null);
    expect(open).toMatchObject([{ account: ann.account }]);
  });

  test('comes after the end of a device that was removed after the call was admitted', async () => {
    await takeKeys(ben, 'laptop');
    beforeWrite(relay.context.storage, () => keep('phone'));
    await expect(group.send(ann, 1)).rejects.toHaveProperty('code', 'state_conflict');
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
  });

  test('leaves the interval of a device that is valid again', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    await keep('phone', 'laptop');
    expect(await noted()).toEqual([]);
    await group.send(ann, 1);
    expect(await seen()).toEqual([0, 1, 2]);
  });

  test('comes after the end of a device whose certificate expired', async () => {
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + 1_000 });
    await keep('phone', 'laptop');
    await syncAs(ben, 'laptop');
    relay.clock.advance(1_000);
    await relay.runJob(expired);
    await group.send(ann, 1);
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + month });
    await keep('phone', 'laptop');
    expect(await seen()).toEqual([0, 1]);
  });

  test('changes nothing if its own device is no longer valid', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    const session = ben.session('laptop');
    const params = { group_id: group.groupId };
    expect(await relay.codeOf('group.sync', params, { session })).toBe('unauthorized');
    expect(await position()).toEqual({ sequence: 1, epoch: 1 });
  });

  test('ignores inactive devices without access in the group', async () => {
    const cem = await Person.register(relay, 'cem');
    await cem.publishState(await cem.state({ devices: [] }));
    expect(await noted()).toHaveLength(1);
    expect(await group.send(ann, 1)).toBe(2);
  });
});

describe('05 §10.3: a certificate that expires', () => {
  const expiring = async (seconds: number) => {
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + seconds });
    await keep('phone', 'laptop');
    await takeKeys(ben, 'laptop');
    await relay.runJob(ended);
    await relay.runJob(expired);
  };

  test('ends the access of its device when the time comes', async () => {
    await expiring(1_000);
    const end = relay.clock.now() + 1_000;
    expect(await relay.runJob(expired)).toBe(end);
    relay.clock.advance(999);
    await relay.runJob(expired);
    expect(await noted()).toEqual([]);
    relay.clock.advance(1);
    const woken: string[] = [];
    relay.context.jobs.wake = (name) => woken.push(name);
    await relay.runJob(expired);
    expect(await noted()).toEqual([ben.device('laptop').deviceId]);
    expect(woken).toEqual([ended]);
    await relay.runJob(ended);
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
    expect(await noted()).toEqual([]);
    // It is not found again.
    await relay.runJob(expired);
    expect(await noted()).toEqual([]);
  });

  test('is found again if it was found with the clock ahead, which was set right', async () => {
    await expiring(1_000);
    relay.clock.advance(1_000);
    await relay.runJob(expired);
    relay.clock.advance(-1_000);
    await relay.runJob(expired);
    expect(await noted()).toEqual([]);
    await relay.runJob(ended);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, null] }]);
    relay.clock.advance(1_000);
    await relay.runJob(expired);
    await relay.runJob(ended);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, 1] }]);
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
  });

  test('is not looked for while the clock may be wrong', async () => {
    await expiring(1_000);
    await using runner = new JobRunner('alone');
    const guard = new ClockGuard(relay.context);
    await guard.start();
    relay.clock.advance(month);
    const isPaused = vi.spyOn(guard, 'secondsToWait');
    runner.start(relay.context, [expiredDevicesJob], guard);
    await vi.waitFor(() => expect(isPaused).toHaveResolvedWith(60), patience);
    await runner[Symbol.asyncDispose]();
    expect(await noted()).toEqual([]);
  });

  test('ends no access if it was renewed in time', async () => {
    await expiring(1_000);
    relay.clock.advance(999);
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + month });
    await keep('phone', 'laptop');
    relay.clock.advance(1);
    await relay.runJob(expired);
    expect(await noted()).toEqual([]);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, null] }]);
  });

  test('ends no access if it is renewed while it is noted', async () => {
    await expiring(1_000);
    relay.clock.advance(1_000);
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, work) => {
      storage.write = write;
      await ben.addDevice('laptop', { expiresAt: relay.clock.now() + month });
      await keep('phone', 'laptop');
      return (await write.call(storage, aggregates, work)) as never;
    };
    await relay.runJob(expired);
    expect(await noted()).toEqual([]);
  });

  test('05 §7.3 rule 4: the expiry of a session changes nothing', async () => {
    await takeKeys(ben, 'laptop');
    relay.clock.advance(10 * 86_400);
    await relay.runJob(expired);
    await relay.runJob(ended);
    expect(await intervals('laptop')).toMatchObject([{ messages: [2, null] }]);
  });

  test('many expire at once, more than one transaction notes', async () => {
    const accounts = Array.from({ length: 120 }, (_, count) => `account ${count}`);
    const aggregates = accounts.map((account) => `account:${account}`);
    await relay.context.storage.write(aggregates, async (tx) => {
      for (const [count, account] of accounts.entries()) {
        await tx.run(
          `INSERT INTO devices (account, device_id, not_before, expires_at, certificate_id,
              certificate) VALUES (?, ?, 0, 1, 'c', '{}')`,
          account,
          `device ${count}`,
        );
      }
    });
    await relay.runJob(expired);
    expect(await noted()).toHaveLength(120);
    await relay.runJob(ended);
    expect(await noted()).toEqual([]);
  });
});

describe('05 §12.6: an interrupted job', () => {
  test('after a crash at any commit the next run ends the rest and rotates no group twice', async () => {
    const groups = [group];
    for (let count = 0; count < 3; count += 1) {
      const other = await TestGroup.create(relay, ann);
      await other.admit(ben);
      groups.push(other);
    }
    for (const each of groups) await takeKeys(ben, 'laptop', each);
    await keep('phone');
    for (let round = 0; round < groups.length; round += 1) await crashJob(relay, ended, 1);
    await relay.runJob(ended);
    for (const each of groups) {
      expect(await position(each)).toEqual({ sequence: 2, epoch: 2 });
      expect(await intervals('laptop', each)).toEqual([
        { messages: [2, 1], keys: [1, 1], authority: 1 },
      ]);
    }
    expect(await noted()).toEqual([]);
  });

  test('a storage fault at any statement leaves a group unchanged', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    const before = await relay.dump();
    for (let faults = 0; ; faults += 1) {
      let left = faults;
      const process = new AbortController();
      relay.faults.beforeStatement = (sql) => {
        if (/^\s*SELECT/.test(sql)) return;
        left -= 1;
        if (left >= 0) return;
        process.abort();
        throw new Error('fault of the test');
      };
      const failed = await relay.runJob(ended, process.signal).then(
        () => false,
        () => true,
      );
      delete relay.faults.beforeStatement;
      if (!failed) {
        expect(faults).toBeGreaterThan(4);
        break;
      }
      const { inactive_devices: left_, ...now } = await relay.dump();
      const { inactive_devices: noted_, ...then } = before;
      expect(left_).toEqual(noted_);
      // Only the last statement, which unmarks the device, comes after the group's commit.
      if (JSON.stringify(now) !== JSON.stringify(then)) {
        expect(await position()).toEqual({ sequence: 2, epoch: 2 });
      }
    }
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
    expect(await noted()).toEqual([]);
  });

  test('one failing device does not delay the others', async () => {
    const cem = await Person.register(relay, 'cem', ['phone', 'laptop']);
    await group.admit(cem);
    for (const person of [ben, cem]) await takeKeys(person, 'laptop');
    for (const person of [ben, cem]) {
      await person.publishState(await person.state({ devices: ['phone'] }));
    }
    const { storage } = relay.context;
    const { write } = storage;
    let isFirst = true;
    storage.write = async (aggregates, work) => {
      if (isFirst) {
        isFirst = false;
        throw new Error('fault of the test');
      }
      return (await write.call(storage, aggregates, work)) as never;
    };
    expect(await relay.runJob(ended)).toBe(relay.clock.now() + 1);
    storage.write = write;
    expect(await noted()).toHaveLength(1);
    relay.clock.advance(1);
    expect(await relay.runJob(ended)).toBe(undefined);
    expect(await noted()).toEqual([]);
  });

  test('two concurrent processes rotate once', async () => {
    await takeKeys(ben, 'laptop');
    await keep('phone');
    await Promise.all([relay.runJob(ended), relay.runJob(ended)]);
    expect(await position()).toEqual({ sequence: 2, epoch: 2 });
  });
});

describe('02 §12.3: hints after the end of a device', () => {
  test('subscribers confirmed before are checked again, even if the removal notice was lost', async () => {
    const board = new Connections(relay);
    const laptop = await board.connect(ben, 'laptop');
    await laptop.subscribeGroups(group);
    const phone = await board.withGroups(ben, group);
    // The process missed the notice.
    laptop.bound.revoke = () => {};
    await keep('phone');
    await relay.runJob(ended);
    await group.update({ name: 'later' });
    await vi.waitFor(() => expect(phone.hints()).toEqual([['timeline', 2]]), patience);
    expect(laptop.hints()).toEqual([]);
  });
});
