import { createGroupSecret, encodeBase64url } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeInterval } from '../../../src/groups/chain/access-store.ts';
import { TestGroup } from '../../fixtures/group.ts';
import { readKeys, readPage, shape, verified } from '../../fixtures/group-reader.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

const method = 'group.key.sync';
const devices = ['phone', 'laptop'];
const relay = inProcessRelay({ groupKeyPage: 20 });
const ann = relay.person('ann', devices);
const ben = relay.person('ben', devices);
const cem = relay.person('cem', devices);
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
});

const page = (person: Person, reading = {}) => readPage(relay, group, person, reading);
const shapeOf = async (person: Person, reading = {}) => shape(await page(person, reading));
const keysOf = (person: Person, reading = {}) => readKeys(relay, group, person, reading);
const codeOf = (person: Person, params = {}, device = 'phone') =>
  relay.codeOf(method, { group_id: group.groupId, ...params }, { session: person.session(device) });
/** Epochs whose material this device could verify, all of them with the secret in force. */
const opened = async (person: Person, reading = {}) => {
  const secrets = verified(await keysOf(person, reading));
  for (const secret of secrets.values()) expect(secret).toBe(inForce());
  return [...secrets.keys()];
};
/** The client secret in force, base64url. */
const inForce = () => encodeBase64url(group.secret);
const intervals = async () => await relay.rows('group_intervals');
/** Newest epoch a device was given the relay secret of, by device. */
const delivered = async (person: Person, device = 'phone') => {
  const { group_intervals: rows } = (await relay.dump()) as Record<string, Delivery[]>;
  const { deviceId } = person.device(device);
  const own = rows?.filter((row) => row.device_id === deviceId && row.message_to === null);
  return own?.map((row) => row.delivered_epoch);
};
interface Delivery {
  readonly device_id: string;
  readonly message_to: number | null;
  readonly delivered_epoch: number | null;
}

describe('05 §13.25: the epochs that a device gets', () => {
  test('05 §10.2: the creating device gets and opens every epoch', async () => {
    await group.admit(cem);
    expect(await shapeOf(ann)).toBe('0* 1 2');
    expect(await opened(ann)).toEqual([0, 1, 2]);
    expect((await page(ann)).has_more).toBe(false);
  });

  test('05 §10.2: the applying device begins with the epoch of the approval', async () => {
    await group.admit(cem);
    expect(await shapeOf(ben)).toBe('1* 2');
    expect(await opened(ben)).toEqual([1, 2]);
    expect(await opened(cem)).toEqual([2]);
  });

  test('05 §10.2: any other device begins with the epoch of its first successful call', async () => {
    expect(await shapeOf(ben, { device: 'laptop' })).toBe('1*');
    await group.admit(cem);
    expect(await opened(ben, { device: 'laptop' })).toEqual([1, 2]);
    expect(await shapeOf(ann, { device: 'laptop' })).toBe('2*');
  });

  test('05 §10.2: refused calls and other methods open no interval', async () => {
    const before = await intervals();
    expect(await codeOf(ben, { after: 9 }, 'laptop')).toBe('bad_request');
    expect(await codeOf(ben, { limit: 0 }, 'laptop')).toBe('bad_request');
    const params = { group_id: group.groupId };
    await relay.call('group.resolve', params, { session: ben.session('laptop') });
    expect(await intervals()).toEqual(before);
  });

  test('05 §3.7: every call seals again, to the calling device', async () => {
    const [first, second] = [await page(ann), await page(ann)];
    expect(first.keys[0]?.relay_secret_box.enc).not.toBe(second.keys[0]?.relay_secret_box.enc);
    expect(first.keys[0]?.client_secret_box).toEqual(second.keys[0]?.client_secret_box);
    const foreign = await readKeys(relay, group, ann, { device: 'laptop' });
    expect(foreign.map(({ status }) => status)).toEqual(['verified']);
  });
});

describe('05 §12.8: pages', () => {
  beforeEach(() => group.admit(cem));

  test('hold the requested range in ascending order, and say if there is more', async () => {
    const first = await page(ann, { limit: 1 });
    expect([shape(first), first.has_more]).toEqual(['0*', true]);
    const second = await page(ann, { after: 0, limit: 1 });
    expect([shape(second), second.has_more]).toEqual(['1*', true]);
    const third = await page(ann, { after: 1, limit: 1 });
    expect([shape(third), third.has_more]).toEqual(['2*', false]);
    const last = await page(ann, { after: 2 });
    expect([shape(last), last.has_more]).toEqual(['', false]);
  });

  test("have no more entries than the relay's limit", async () => {
    await relay.restart({ groupKeyPage: 2 });
    for (const reading of [{}, { limit: 500 }]) {
      const first = await page(ann, reading);
      expect([shape(first), first.has_more]).toEqual(['0* 1', true]);
    }
    expect(await shapeOf(ann, { after: 1 })).toBe('2*');
  });

  test('continue in another range of the device', async () => {
    await closeAndLeaveOut(ben);
    const first = await page(ben, { limit: 2 });
    expect([shape(first), first.has_more]).toEqual(['1* 2', true]);
    const second = await page(ben, { after: 2, limit: 2 });
    expect([shape(second), second.has_more]).toEqual(['4*', false]);
  });

  test("02 §6: end before a box that would exceed the answer's size", async () => {
    const secret = createGroupSecret(nodeRandom);
    const large = { ...group.preparation(secret) };
    const { [ann.account]: box } = large.client_secret_boxes;
    const boxes = {
      ...large.client_secret_boxes,
      [ann.account]: { ...box, x: 'x'.repeat(950_000) },
    };
    const params = { ...large, client_secret_boxes: boxes };
    await relay.call('group.secret.rotation.prepare', params, { session: ann.session() });
    await group.write('group.secret.rotation.commit', group.rotation(secret));
    group.secret = secret;
    await group.rotate();
    const first = await page(ann);
    expect([shape(first), first.has_more]).toEqual(['0* 1 2', true]);
    const second = await page(ann, { after: 2 });
    expect([shape(second), second.has_more]).toEqual(['3*', true]);
    expect(verified(await keysOf(ann, { after: 2 })).get(3)).toBe(encodeBase64url(secret));
    expect(await shapeOf(ann, { after: 3 })).toBe('4*');
  });

  test('begin after any epoch, also one that the device lacks or that was deleted', async () => {
    expect(await shapeOf(cem, { after: -1 })).toBe('2*');
    expect(await shapeOf(cem, { after: 0 })).toBe('2*');
    expect(await codeOf(cem, { after: 3 })).toBe('bad_request');
    expect(await codeOf(cem, { after: -2 })).toBe('bad_request');
    expect(await codeOf(cem, { after: 0.5 })).toBe('bad_request');
  });
});

/** A device's access ends and begins again one epoch later; epoch 3 is not for it. */
async function closeAndLeaveOut(person: Person): Promise<void> {
  const { account } = person;
  const { deviceId } = person.device();
  await relay.context.storage.write(`group:${group.groupId}`, (tx) =>
    closeInterval(tx, group.groupId, { account, deviceId, at: { sequence: 2, epoch: 2 } }),
  );
  const [dora, emil] = [await Person.register(relay, 'dora'), await Person.register(relay, 'emil')];
  await group.admit(dora);
  await group.admit(emil);
  expect(await shapeOf(person, { after: 2 })).toBe('4*');
}

describe('05 §4.11: the client secret box', () => {
  test('is in the first entry of every page, and again when the commitment changes', async () => {
    await group.admit(cem);
    await group.rotate();
    await group.update({ name: 'other' });
    expect(await shapeOf(ann)).toBe('0* 1 2 3*');
    expect(await shapeOf(ann, { after: 0 })).toBe('1* 2 3*');
    expect(await shapeOf(ann, { after: 2 })).toBe('3*');
    await group.rotate();
    await group.remove([cem]);
    expect(await shapeOf(ann)).toBe('0* 1 2 3* 4* 5');
  });

  test('is there again when the member key changes under the same commitment', async () => {
    const secret = inForce();
    await group.rotate(newMemberKey());
    await group.leave(ben);
    expect(await shapeOf(ann)).toBe('0* 1 2* 3');
    const secrets = verified(await keysOf(ann));
    expect([...secrets.values()]).toEqual([secret, secret, inForce(), inForce()]);
  });

  test('05 §7.4: a rotation leaves the boxes of earlier epochs as they were', async () => {
    const before = await page(ben);
    const secret = inForce();
    await group.rotate();
    const [first, second] = (await page(ben)).keys;
    expect(first?.client_secret_box).toEqual(before.keys[0]?.client_secret_box);
    expect(second?.client_secret_box).toBeDefined();
    const secrets = verified(await keysOf(ben));
    expect([...secrets.values()]).toEqual([secret, inForce()]);
  });

  test('05 §7.4: is the newest in force in the epoch, also among several under one secret', async () => {
    await group.requestRecovery(ben);
    await group.recover([ben]);
    await group.admit(cem);
    // No device may read both sides of a recovery, unless a test says so.
    await relay.context.storage.write(`group:${group.groupId}`, (tx) =>
      tx.run('UPDATE group_intervals SET authority = 1'),
    );
    expect(await shapeOf(ben)).toBe('1* 2* 3');
    expect(await opened(ben)).toEqual([1, 2, 3]);
  });

  test('is omitted across a gap between two ranges of the device', async () => {
    await group.admit(cem);
    await closeAndLeaveOut(ben);
    expect(await shapeOf(ben)).toBe('1* 2 4');
    expect(await opened(ben)).toEqual([1, 2, 4]);
  });

  test('verifies throughout a long history with many secrets', async () => {
    const secrets = [inForce(), inForce()];
    for (let count = 0; count < 18; count += 1) {
      await group.rotate();
      secrets.push(inForce());
    }
    const results = verified(await keysOf(ann));
    expect([...results.values()]).toEqual(secrets);
  });
});

describe('05 §10.3: ended access', () => {
  test('05 §9.1: an account that left reads nothing, and begins again with the next approval', async () => {
    await group.leave(ben);
    expect(await codeOf(ben)).toBe('forbidden');
    await group.admit(ben);
    expect(await shapeOf(ben)).toBe('3*');
    expect(await opened(ben)).toEqual([3]);
    expect(await shapeOf(ben, { device: 'laptop' })).toBe('3*');
  });

  test('05 §9.2: a banned account reads nothing, also after the ban is lifted', async () => {
    await group.ban([ben]);
    expect(await codeOf(ben)).toBe('forbidden');
    await group.unban([ben]);
    expect(await codeOf(ben)).toBe('forbidden');
  });

  test('05 §11.4: a closed group is served to devices with access, and opens none', async () => {
    await group.close();
    expect(await opened(ben)).toEqual([1]);
    expect(await page(ben, { device: 'laptop' })).toEqual({ keys: [], has_more: false });
  });
});

describe('05 §11.3: deleted epochs', () => {
  const prune = (...epochs: number[]) =>
    relay.context.storage.write(`group:${group.groupId}`, async (tx) => {
      for (const epoch of epochs) {
        await tx.run('DELETE FROM group_epochs WHERE epoch = ?', epoch);
      }
    });

  test('are omitted; the next epoch has the box', async () => {
    await group.admit(cem);
    await prune(0);
    expect(await shapeOf(ann)).toBe('1* 2');
    await prune(1);
    expect(await shapeOf(ann, { after: -1 })).toBe('2*');
    expect(await opened(ann)).toEqual([2]);
  });

  test('do not count for the page limit', async () => {
    await group.admit(cem);
    await prune(1);
    const first = await page(ann, { limit: 2 });
    expect([shape(first), first.has_more]).toEqual(['0* 2', false]);
  });
});

describe('05 §7.3: a delivery of the current relay secret', () => {
  test('is recorded once, with the page that has the secret', async () => {
    expect(await delivered(ben)).toEqual([null]);
    await page(ben);
    expect(await delivered(ben)).toEqual([1]);
    expect(await delivered(ann)).toEqual([null]);
    relay.faults.beforeCommit = () => {
      throw new Error('fault of the test');
    };
    expect(await codeOf(ben)).toBe('ok');
  });

  test('is recorded again in the next epoch', async () => {
    await page(ben);
    await group.admit(cem);
    expect(await delivered(ben)).toEqual([1]);
    await page(ben);
    expect(await delivered(ben)).toEqual([2]);
  });

  test('is not recorded for a page that ends before it or is empty', async () => {
    await group.admit(cem);
    await page(ann, { limit: 2 });
    await page(ann, { after: 2 });
    expect(await delivered(ann)).toEqual([null]);
    await page(ann, { after: 1 });
    expect(await delivered(ann)).toEqual([2]);
  });

  test('is recorded for the device only, with the interval that its first call opens', async () => {
    await page(ben, { device: 'laptop' });
    expect(await delivered(ben, 'laptop')).toEqual([1]);
    expect(await delivered(ben)).toEqual([null]);
  });

  test('05 §12.6: interval and record are written together or not at all', async () => {
    const faults = await throughEveryFault(relay, () => codeOf(ben, {}, 'laptop'));
    expect(faults).toBe(2);
    expect(await delivered(ben, 'laptop')).toEqual([1]);
  });

  test('publishes no notice', async () => {
    relay.takeNotices();
    await page(ben);
    expect(relay.takeNotices()).toEqual([]);
  });
});

describe('05 §13.25: errors', () => {
  test.each([
    ['a group ID that is none', { group_id: 'grp_x' }, 'bad_request'],
    ['a group that is not here', { group_id: `grp_${'A'.repeat(22)}` }, 'not_found'],
    ['an after that is no integer', { after: '1' }, 'bad_request'],
    ['a limit of nothing', { limit: 0 }, 'bad_request'],
  ])('%s', async (_, params, code) => {
    expect(await codeOf(ann, params)).toBe(code);
  });

  test('strangers, applicants and account sessions are refused', async () => {
    expect(await codeOf(cem)).toBe('forbidden');
    expect(await codeOf(cem, { after: 9 })).toBe('forbidden');
    await group.apply(cem, await group.invite());
    expect(await codeOf(cem)).toBe('forbidden');
    const params = { group_id: group.groupId };
    const session = ann.accountSession();
    expect(await relay.codeOf(method, params, { session })).toBe('forbidden');
    expect(await relay.codeOf(method, params)).toBe('unauthorized');
  });

  test('02 §12: a removed device is refused', async () => {
    await ben.publishState(await ben.state({ devices: ['laptop'] }));
    expect(await codeOf(ben)).toBe('unauthorized');
  });

  test('05 §13.26: boxes of a staged rotation are not served', async () => {
    const secret = createGroupSecret(nodeRandom);
    const params = group.preparation(secret);
    await relay.call('group.secret.rotation.prepare', params, { session: ann.session() });
    expect(await opened(ben)).toEqual([1]);
    expect(await shapeOf(ann)).toBe('0* 1');
  });
});
