import { type GroupParams, type GroupSyncPage, verifyGroupSyncPage } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { TestGroup } from '../../fixtures/group.ts';
import type { Person } from '../../fixtures/person.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben', ['phone', 'laptop']);
const dan = relay.person('dan');
let group: TestGroup;

/** Ann owns the group, Ben is a member, Dan is not. The creation and an approval were before. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
  relay.takeNotices();
});

const sync = async (
  person: Person,
  { device = 'phone', ...facts }: JsonObject & { readonly device?: string } = {},
): Promise<GroupSyncPage> => {
  const params = { group_id: group.groupId, ...facts } as GroupParams<'group.sync'>;
  const answer = await relay.call('group.sync', params, { session: person.session(device) });
  verifyGroupSyncPage(network, answer, params);
  return answer as unknown as GroupSyncPage;
};
const codeOf = (person: Person, facts: JsonObject = {}, device = 'phone') => {
  const params = { group_id: group.groupId, ...facts };
  return relay.codeOf('group.sync', params, { session: person.session(device) });
};
const sequencesOf = ({ events }: GroupSyncPage) => events.map(({ sequence }) => sequence).join(' ');
const read = async (person: Person, device = 'phone') =>
  sequencesOf(await sync(person, { device }));
const intervals = async () => await relay.rows('group_intervals');
/** Ben's laptop is removed, which ends its access, or comes back. */
const setLaptop = async (isThere: boolean) => {
  const devices = isThere ? ['phone', 'laptop'] : ['phone'];
  await ben.publishState(await ben.state({ devices }));
  await relay.runJob('accounts.inactive-devices');
};

describe('05 §13.4: a page', () => {
  test('has every event after the position as it was accepted, each certificate once', async () => {
    await group.update({ name: 'later', extra: { deep: ['é', 0] } } as never);
    await group.send(ben, 1);
    const page = await sync(ann);
    expect(page.events).toHaveLength(4);
    expect(page.events[0]).toEqual({
      sequence: 0,
      epoch: 0,
      payload: group.create,
      accepted_at: relay.clock.now(),
      signer_device_id: ann.device().deviceId,
    });
    expect(page.events.map(({ epoch }) => epoch)).toEqual([0, 1, 1, 1]);
    expect(page.events[2]?.payload).toMatchObject({ extra: { deep: ['é', 0] } });
    const certificates = [ann.device().certificate, ben.device().certificate];
    expect(page.certificates.map(canonicalJson).sort()).toEqual(
      certificates.map(canonicalJson).sort(),
    );
    expect(page.has_more).toBe(false);
  });

  test('has the certificates that events were signed with, also of removed devices', async () => {
    const { certificate } = ben.device('laptop');
    await group.send(ben, 1, 'laptop');
    await setLaptop(false);
    const page = await sync(ann, { after: 1 });
    expect(page.certificates).toEqual([certificate]);
  });

  test('pages continue where the last one ended, without gaps or repeats', async () => {
    for (let each = 0; each < 3; each += 1) {
      await group.send(ben, 1);
      await group.update({ name: `name ${each}` });
    }
    const seen: number[] = [];
    for (let after = -1, more = true; more; ) {
      const page = await sync(ann, { after, limit: 3 });
      more = page.has_more;
      expect(page.events.length).toBe(seen.length === 6 ? 2 : 3);
      seen.push(...page.events.map(({ sequence }) => sequence));
      after = seen.at(-1) as number;
    }
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('a page that ends with the timeline has no more, an empty page neither', async () => {
    expect(await sync(ann, { limit: 2 })).toMatchObject({ has_more: false });
    expect(await sync(ann, { limit: 1 })).toMatchObject({ has_more: true });
    expect(await sync(ann, { after: 1 })).toEqual({
      events: [],
      certificates: [],
      has_more: false,
    });
  });

  test('large events make short pages of at least one', async () => {
    const extra = 'x'.repeat(700_000);
    for (let each = 0; each < 3; each += 1) await group.update({ name: 'x', extra } as never);
    const pages = [];
    for (let after = -1, more = true; more; ) {
      const page = await sync(ann, { after });
      more = page.has_more;
      pages.push(sequencesOf(page));
      after = page.events.at(-1)?.sequence as number;
    }
    expect(pages).toEqual(['0 1 2', '3', '4']);
  });

  test('a rotation by the relay has no signer and no certificate', async () => {
    await relay.call(
      'group.key.sync',
      { group_id: group.groupId },
      { session: ben.session('laptop') },
    );
    await setLaptop(false);
    const { events, certificates } = await sync(ann, { after: 1 });
    expect(events).toEqual([
      {
        sequence: 2,
        epoch: 2,
        payload: { $type: network.type('group.key.rotated') },
        accepted_at: relay.clock.now(),
      },
    ]);
    expect(certificates).toEqual([]);
  });
});

describe('05 §12.8: the position', () => {
  test.each([
    [{ after: -2 }, 'bad_request'],
    [{ after: -1 }, 'ok'],
    [{ after: 1 }, 'ok'],
    [{ after: 2 }, 'bad_request'],
    [{ after: 1.5 }, 'bad_request'],
    [{ after: '0' }, 'bad_request'],
    [{ limit: 0 }, 'bad_request'],
    [{ limit: 1 }, 'ok'],
    [{ limit: Number.MAX_SAFE_INTEGER }, 'ok'],
    [{ group_id: 'grp_short' }, 'bad_request'],
    [{ group_id: 'grp_AAAAAAAAAAAAAAAAAAAAAA' }, 'not_found'],
  ])('%j: %s', async (facts, code) => {
    expect(await codeOf(ann, facts)).toBe(code);
  });

  test('need not be that of a readable event', async () => {
    await group.send(ben, 1);
    await group.update({ name: 'later' });
    expect(sequencesOf(await sync(ben, { after: 2, device: 'laptop' }))).toBe('3');
  });
});

describe('05 §10.4: what a device reads', () => {
  test('all management events, and messages after the head at its first call', async () => {
    await group.send(ben, 1);
    expect(await read(ben, 'laptop')).toBe('0 1');
    await group.send(ben, 1);
    await group.update({ name: 'later' });
    await group.send(ben, 1);
    expect(await read(ben, 'laptop')).toBe('0 1 3 4 5');
    expect(await read(ben)).toBe('0 1 2 3 4 5');
  });

  test('unreadable events do not count for the page limit', async () => {
    for (let each = 0; each < 4; each += 1) await group.send(ben, 1);
    await group.update({ name: 'later' });
    const page = await sync(ben, { device: 'laptop', limit: 3 });
    expect([sequencesOf(page), page.has_more]).toEqual(['0 1 6', false]);
  });

  test('05 §10.3: nothing of the time when it was not valid, everything from before', async () => {
    expect(await read(ben, 'laptop')).toBe('0 1');
    await group.send(ben, 1);
    await setLaptop(false);
    await group.send(ben, 1);
    await setLaptop(true);
    await group.send(ben, 1);
    expect(await read(ben, 'laptop')).toBe('0 1 2');
    await group.send(ben, 1);
    expect(await read(ben, 'laptop')).toBe('0 1 2 5');
    const page = await sync(ben, { device: 'laptop', after: 1, limit: 1 });
    expect([sequencesOf(page), page.has_more]).toEqual(['2', true]);
  });

  test('05 §10.3: after joining again, nothing of the earlier membership', async () => {
    expect(await group.send(ben, 1)).toBe(2);
    await group.leave(ben);
    await group.send(ann, 2);
    await group.admit(ben);
    await group.send(ann, 3);
    expect(await read(ben)).toBe('0 1 3 5 6');
    expect(await read(ann)).toBe('0 1 2 3 4 5 6');
  });

  test('in a closed group what it could read before; a new device no messages', async () => {
    await group.send(ben, 1);
    await group.close();
    const before = await intervals();
    expect(await read(ben)).toBe('0 1 2 3');
    expect(await read(ben, 'laptop')).toBe('0 1 3');
    expect(await intervals()).toEqual(before);
  });
});

describe('05 §10.2: an interval', () => {
  test('opens with the first successful call, and later calls keep its start', async () => {
    const before = await intervals();
    expect(await codeOf(ben, { after: 2 }, 'laptop')).toBe('bad_request');
    expect(await intervals()).toEqual(before);
    await sync(ben, { device: 'laptop', after: 1 });
    const opened = await intervals();
    expect(opened).not.toEqual(before);
    await group.send(ben, 1);
    await sync(ben, { device: 'laptop' });
    expect(await intervals()).toEqual(opened);
  });

  test('opens for no refused caller', async () => {
    const before = await intervals();
    expect(await codeOf(dan)).toBe('forbidden');
    await group.ban([dan]);
    expect(await codeOf(dan)).toBe('forbidden');
    expect(await codeOf(dan, { after: 99 })).toBe('forbidden');
    expect(await intervals()).toEqual(before);
  });

  test.each(['leave', 'remove', 'ban'] as const)('after a %s nothing is read', async (how) => {
    if (how === 'leave') await group.leave(ben);
    else await group[how]([ben]);
    const before = await intervals();
    expect(await codeOf(ben)).toBe('forbidden');
    expect(await codeOf(ben, {}, 'laptop')).toBe('forbidden');
    expect(await intervals()).toEqual(before);
  });

  test('opens with the account held: its device is removed before, or it is closed', async () => {
    const write = vi.spyOn(relay.context.storage, 'write');
    await sync(ben, { device: 'laptop' });
    const held = write.mock.calls.map(([aggregates]) => aggregates);
    expect(held).toEqual([[`account:${ben.account}`, `group:${group.groupId}`]]);
    // A device with an interval does not write.
    await sync(ben, { device: 'laptop' });
    expect(write).toHaveBeenCalledTimes(1);
  });

  test('a device whose certificate ends before it opens is unauthorized', async () => {
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + 10 });
    await ben.publishState();
    const before = await intervals();
    const { storage } = relay.context;
    const { read: readNow } = storage;
    storage.read = async (work) => {
      const value = await readNow.call(storage, work);
      relay.clock.advance(10);
      return value as never;
    };
    expect(await codeOf(ben, {}, 'laptop')).toBe('unauthorized');
    storage.read = readNow;
    expect(await intervals()).toEqual(before);
  });
});
