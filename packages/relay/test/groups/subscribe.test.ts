import type { ProtocolError } from '@posthouse/protocol';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { groups as groupsModule, readGroupReaders } from '../../src/groups/index.ts';
import { type Connection, Connections } from '../fixtures/connections.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { scansAndSorts } from '../support/engine.ts';
import { throughEveryFault } from '../support/faults.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const most = 3;
/** Well-formed, and of no group. */
const nowhere = `grp_${'A'.repeat(22)}`;

const relay = inProcessRelay({ groupSubscriptions: most });
let board: Connections;
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop']);
/** Groups of ann, of which ben is a member as well. */
let groups: TestGroup[];
let connection: Connection;

beforeEach(async () => {
  board = new Connections(relay);
  groups = [];
  for (let count = 0; count < most + 1; count += 1) {
    const group = await TestGroup.create(relay, ann);
    await group.admit(ben);
    groups.push(group);
  }
  connection = await board.connect(ben, 'laptop');
});

const subscribe = (params: unknown, by = connection) =>
  relay.call('group.subscribe', params, { connection: by });
const group = (index: number) => groups[index] as TestGroup;
const ids = (...indexes: number[]) => indexes.map((index) => group(index).groupId);
/** How a call is refused. */
const refusal = async (call: Promise<unknown>) => {
  const error: ProtocolError = await call.then(
    () => Promise.reject(new Error('it was accepted')),
    (refused) => refused,
  );
  return { code: error.code, data: error.data };
};
const refused = (group_ids: unknown) => refusal(subscribe({ group_ids }));
const subscribed = () => [...board.hub.listeners.group.ids()].sort();
const intervals = async (person = ben, device = 'laptop') => {
  const { group_intervals = [] } = await relay.dump();
  const { deviceId } = person.device(device);
  return (group_intervals as Record<string, unknown>[])
    .filter((row) => row.device_id === deviceId)
    .map(({ group_id, message_from, message_to, key_from }) => ({
      group_id,
      message_from,
      message_to,
      key_from,
    }));
};

describe('05 §13.29: the set', () => {
  test('is replaced as a whole, and empty again', async () => {
    expect(await subscribe({ group_ids: ids(0, 1) })).toBe(null);
    expect(subscribed()).toEqual(ids(0, 1).sort());
    expect(await subscribe({ group_ids: ids(1, 2) })).toBe(null);
    expect(subscribed()).toEqual(ids(1, 2).sort());
    expect(await subscribe({ group_ids: [] })).toBe(null);
    expect(subscribed()).toEqual([]);
  });

  test('belongs to one connection', async () => {
    const other = await board.connect(ben);
    await subscribe({ group_ids: ids(0) });
    await subscribe({ group_ids: ids(1) }, other);
    await subscribe({ group_ids: [] });
    expect(subscribed()).toEqual(ids(1));
  });

  test('02 §13.3: survives a renewal of the session', async () => {
    await subscribe({ group_ids: ids(0) });
    connection.bound.renew({ ...ben.session('laptop'), id: 'renewed' });
    await group(0).update({ name: 'heard' });
    expect(connection.hints()).toEqual([['timeline', 2]]);
    // Both are counted as present: the new session adds nothing.
    await relay.restart({ groupSubscriptions: 0 });
    await subscribe({ group_ids: ids(0) });
  });

  test.each(['closes', 'is revoked'] as const)('ends when the connection %s', async (how) => {
    await subscribe({ group_ids: ids(0, 1) });
    if (how === 'closes') connection.bound.release();
    else connection.bound.revoke();
    expect(subscribed()).toEqual([]);
  });

  test('is empty if the connection ends while its groups are read', async () => {
    const { storage } = relay.context;
    const { read } = storage;
    storage.read = async (work) => {
      const found = await read.call(storage, work);
      connection.bound.release();
      return found as never;
    };
    await subscribe({ group_ids: ids(0) });
    storage.read = read;
    expect(subscribed()).toEqual([]);
  });

  test('unknown parameters are ignored (02 §2.5)', async () => {
    await subscribe({ group_ids: ids(0), extra: 1 });
    expect(subscribed()).toEqual(ids(0));
  });
});

describe('05 §13.29 step 1: errors without data', () => {
  test.each([
    ['missing', undefined],
    ['null', null],
    ['a text', nowhere],
    ['with a number', [1]],
    ['with null', [null]],
    ['with another ID', ['inv_AAAAAAAAAAAAAAAAAAAAAA']],
    ['with too short an ID', [nowhere.slice(0, -1)]],
    ['with too long an ID', [`${nowhere}A`]],
  ])('group_ids %s is bad_request', async (_what, group_ids) => {
    await subscribe({ group_ids: ids(0) });
    expect(await refused(group_ids)).toEqual({ code: 'bad_request', data: undefined });
    expect(subscribed()).toEqual(ids(0));
  });

  test('a group named twice is bad_request, before it is read', async () => {
    const twice = { code: 'bad_request', data: undefined };
    expect(await refused([...ids(0), ...ids(0)])).toEqual(twice);
    expect(await refused([nowhere, nowhere])).toEqual(twice);
  });

  test('without a session it is unauthorized', async () => {
    const call = relay.call('group.subscribe', { group_ids: ids(0) });
    expect(await refusal(call)).toEqual({ code: 'unauthorized', data: undefined });
  });

  test('a dead connection is unauthorized, whatever it asks for', async () => {
    connection.bound.revoke();
    expect(await refused([nowhere])).toEqual({ code: 'unauthorized', data: undefined });
  });

  test('an account session is forbidden', async () => {
    const session = ben.accountSession();
    const call = relay.call('group.subscribe', { group_ids: [nowhere] }, { session });
    expect(await refusal(call)).toEqual({ code: 'forbidden', data: undefined });
  });

  test('a removed device is unauthorized, also if it clears its set', async () => {
    await relay.context.storage.write(`account:${ben.account}`, async (tx) => {
      await tx.run('DELETE FROM devices WHERE device_id = ?', ben.device('laptop').deviceId);
    });
    for (const group_ids of [ids(0), []]) {
      expect(await refused(group_ids)).toEqual({ code: 'unauthorized', data: undefined });
    }
  });
});

describe('02 §13.1: the count rule', () => {
  const tooMany = { code: 'bad_request', data: undefined };

  test('as many groups as the limit are accepted, one more is refused', async () => {
    await subscribe({ group_ids: ids(0, 1) });
    await subscribe({ group_ids: ids(0, 1, 2) });
    expect(await refused(ids(0, 1, 2, 3))).toEqual(tooMany);
    expect(subscribed()).toEqual(ids(0, 1, 2).sort());
    // Replaced at once, they are no more than before.
    await subscribe({ group_ids: ids(3, 2, 1) });
    expect(subscribed()).toEqual(ids(1, 2, 3).sort());
  });

  test('is checked before the groups are read', async () => {
    const strangers = ['B', 'C', 'D', 'E'].map((letter) => `grp_${letter.repeat(21)}A`);
    expect(await refused(strangers)).toEqual(tooMany);
  });

  test('a lowered limit refuses additions only', async () => {
    await subscribe({ group_ids: ids(0, 1, 2) });
    await relay.restart({ groupSubscriptions: 1 });
    expect(await refused(ids(0, 1, 3))).toEqual(tooMany);
    expect(await refused(ids(0, 3))).toEqual(tooMany);
    await subscribe({ group_ids: ids(2, 1, 0) });
    await subscribe({ group_ids: ids(0, 1) });
    // What was given up is an addition when it comes back.
    expect(await refused(ids(0, 1, 2))).toEqual(tooMany);
    await subscribe({ group_ids: ids(3) });
    expect(subscribed()).toEqual(ids(3));
  });

  test('a limit of 0 lets a set be kept, reduced and cleared', async () => {
    await subscribe({ group_ids: ids(0, 1) });
    await relay.restart({ groupSubscriptions: 0 });
    expect(await refused(ids(2))).toEqual(tooMany);
    for (const kept of [ids(1, 0), ids(1), []]) await subscribe({ group_ids: kept });
    expect(await refused(ids(1))).toEqual(tooMany);
  });

  test('02 §18: all connections of the process have a total; the set stays as it was', async () => {
    await relay.restart({ subscriptions: 4 });
    board = new Connections(relay);
    connection = await board.connect(ben, 'laptop');
    const other = await board.connect(ann);
    await subscribe({ group_ids: ids(0, 1, 2) }, other);
    await subscribe({ group_ids: ids(0) });
    expect(await refused(ids(0, 1))).toMatchObject({ code: 'rate_limited' });
    await subscribe({ group_ids: ids(1) });
    await subscribe({ group_ids: ids(0, 1) }, other);
    await subscribe({ group_ids: ids(1, 2) });
    expect(await refused(ids(0, 1, 2))).toMatchObject({ code: 'rate_limited' });
    expect(subscribed()).toEqual(ids(0, 1, 2).sort());
  });

  test('02 §18: one account has a share of the total; others still subscribe', async () => {
    await relay.restart({ subscriptions: 6, subscriptionsPerAccount: 3 });
    board = new Connections(relay);
    const [laptop, phone, other] = [
      await board.connect(ben, 'laptop'),
      await board.connect(ben),
      await board.connect(ann),
    ];
    await subscribe({ group_ids: ids(0, 1) }, laptop);
    await subscribe({ group_ids: ids(0) }, phone);
    expect(await refusal(subscribe({ group_ids: ids(0, 1) }, phone))).toEqual({
      code: 'rate_limited',
      data: { retry_after: 60 },
    });
    await subscribe({ group_ids: ids(0, 1, 2) }, other);
    await subscribe({ group_ids: ids(2) }, phone);
    laptop.bound.release();
    await subscribe({ group_ids: ids(0, 1, 2) }, phone);
  });

  test('concurrent calls are checked one after the other', async () => {
    const outcomes = await Promise.all(
      [ids(0, 1), ids(2, 3), ids(0, 1, 2, 3), ids(2)].map((group_ids) =>
        relay.codeOf('group.subscribe', { group_ids }, { connection }),
      ),
    );
    expect(outcomes).toEqual(['ok', 'ok', 'bad_request', 'ok']);
    expect(subscribed()).toEqual(ids(2));
  });
});

describe('05 §13.29 step 2: errors that name every group', () => {
  let cem: Person;
  let closedDoor: TestGroup;

  beforeEach(async () => {
    cem = await Person.register(relay, 'cem');
    closedDoor = await TestGroup.create(relay, cem);
    await subscribe({ group_ids: ids(0) });
  });

  test.each([
    ['no such group', () => [nowhere], 'not_found', () => [nowhere]],
    ['a group of others', () => [closedDoor.groupId], 'forbidden', () => [closedDoor.groupId]],
    [
      'both, among good ones',
      () => [...ids(1), closedDoor.groupId, nowhere],
      'not_found',
      () => [closedDoor.groupId, nowhere],
    ],
    [
      'one of others among good ones',
      () => [...ids(1), closedDoor.groupId, ...ids(0)],
      'forbidden',
      () => [closedDoor.groupId],
    ],
  ] as const)('%s', async (_what, wanted, code, group_ids) => {
    const before = await relay.dump();
    expect(await refused(wanted())).toEqual({ code, data: { group_ids: group_ids() } });
    expect(await relay.dump()).toEqual(before);
    expect(subscribed()).toEqual(ids(0));
  });

  test('the error shows nothing else of a group', async () => {
    const texts = await Promise.all(
      [closedDoor.groupId, nowhere].map(async (id) => {
        const error: Error = await subscribe({ group_ids: [id] }).catch((refused) => refused);
        return error.message;
      }),
    );
    expect(texts[0]).toBe(texts[1]);
  });

  test.each(['leave', 'remove', 'ban'] as const)('forbidden after a %s', async (how) => {
    const left = group(1);
    if (how === 'leave') await left.leave(ben);
    else await left[how]([ben]);
    const data = { group_ids: [left.groupId] };
    expect(await refused(ids(0, 1, 2))).toEqual({ code: 'forbidden', data });
    expect(await intervals()).toHaveLength(1);
  });

  test('banned without ever being a member', async () => {
    await closedDoor.ban([ben]);
    const group_ids = [closedDoor.groupId];
    expect(await refused(group_ids)).toEqual({ code: 'forbidden', data: { group_ids } });
  });
});

describe('05 §10.2: intervals', () => {
  test('the missing ones open after the head, in all groups at once', async () => {
    await group(1).update({ name: 'further' });
    await subscribe({ group_ids: ids(0, 1) });
    expect(await intervals()).toEqual(
      [
        { group_id: group(0).groupId, message_from: 2, message_to: null, key_from: 1 },
        { group_id: group(1).groupId, message_from: 3, message_to: null, key_from: 1 },
      ].sort((a, b) => (a.group_id < b.group_id ? -1 : 1)),
    );
  });

  test('they open with the account held: its device is removed before, or they are closed', async () => {
    const write = vi.spyOn(relay.context.storage, 'write');
    await subscribe({ group_ids: ids(0, 1) });
    const held = write.mock.calls.map(([aggregates]) => aggregates);
    expect(held).toEqual([[`account:${ben.account}`, ...ids(0, 1).map((id) => `group:${id}`)]]);
  });

  test('a device with an interval keeps it, and nothing is written', async () => {
    await subscribe({ group_ids: ids(0) });
    await group(0).update({ name: 'further' });
    const before = await relay.dump();
    relay.faults.beforeStatement = (sql) => {
      if (!/^\s*SELECT/.test(sql)) throw new Error(`${sql} was run`);
    };
    await subscribe({ group_ids: ids(0) });
    delete relay.faults.beforeStatement;
    expect(await relay.dump()).toEqual(before);
  });

  test('the interval stays when the subscription ends', async () => {
    await subscribe({ group_ids: ids(0) });
    const before = await intervals();
    await subscribe({ group_ids: [] });
    expect(await intervals()).toEqual(before);
    expect(before).toMatchObject([{ message_to: null }]);
  });

  test('the device of an approved application keeps its own', async () => {
    const phone = await board.connect(ben);
    await subscribe({ group_ids: ids(0) }, phone);
    expect(await intervals(ben, 'phone')).toContainEqual({
      group_id: group(0).groupId,
      message_from: 1,
      message_to: null,
      key_from: 1,
    });
  });

  test('a closed group is served, and opens none (02 §18)', async () => {
    await group(0).close();
    await subscribe({ group_ids: ids(0, 1) });
    expect(subscribed()).toEqual(ids(0, 1).sort());
    expect(await intervals()).toMatchObject([{ group_id: group(1).groupId }]);
  });

  test('a group whose interval was closed meanwhile is written with the others', async () => {
    await subscribe({ group_ids: ids(1) });
    const { storage } = relay.context;
    const { write } = storage;
    const open = async () => {
      const all = (await intervals()).filter(({ message_to }) => message_to === null);
      return all.map(({ group_id }) => group_id).sort();
    };
    const written: unknown[][] = [];
    storage.write = async (aggregates, work) => {
      if (written.length === 0) {
        await write.call(storage, 'test', (tx) =>
          tx.run(
            'UPDATE group_intervals SET message_to = 1, key_to = 1 WHERE device_id = ?',
            ben.device('laptop').deviceId,
          ),
        );
      }
      const found = await write.call(storage, aggregates, work);
      written.push(await open());
      return found as never;
    };
    await subscribe({ group_ids: ids(0, 1) });
    storage.write = write;
    expect(written).toEqual([[], ids(0, 1).sort()]);
  });

  test('a member removed between read and write is refused, and nothing is written', async () => {
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, work) => {
      storage.write = write;
      await group(1).remove([ben]);
      return (await write.call(storage, aggregates, work)) as never;
    };
    const data = { group_ids: ids(1) };
    expect(await refused(ids(0, 1))).toEqual({ code: 'forbidden', data });
    expect(await intervals()).toEqual([]);
    expect(subscribed()).toEqual([]);
  });

  test('a device whose certificate ends between read and write is unauthorized', async () => {
    await ben.addDevice('laptop', { expiresAt: relay.clock.now() + 10 });
    await ben.publishState();
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, work) => {
      storage.write = write;
      relay.clock.advance(10);
      return (await write.call(storage, aggregates, work)) as never;
    };
    expect(await refused(ids(0, 1))).toEqual({ code: 'unauthorized', data: undefined });
    expect(await intervals()).toEqual([]);
  });

  test('05 §12.6: a storage fault anywhere leaves set and intervals unchanged', async () => {
    await subscribe({ group_ids: ids(0) });
    const faults = await throughEveryFault(relay, async () => {
      const code = await relay.codeOf('group.subscribe', { group_ids: ids(1, 2) }, { connection });
      expect(subscribed()).toEqual(code === 'ok' ? ids(1, 2).sort() : ids(0));
      return code;
    });
    expect(faults).toBe(2);
  });
});

test('no statement of a subscription or of checking subscribers scans a whole table or sorts', async () => {
  const { storage } = relay.context;
  const statements = new Set<string>();
  relay.faults.beforeStatement = (sql) => void statements.add(sql);
  await subscribe({ group_ids: ids(0, 1) });
  await storage.read(async (tx) => {
    await readGroupReaders(tx, group(0).groupId, [ann.account, ben.account]);
    await groupsModule.subscriptionResync?.notices(tx, ids(0, 1), { withLists: true });
  });
  delete relay.faults.beforeStatement;
  const searched = [...statements].filter((each) => /^\s*SELECT .* FROM/s.test(each));
  const found: Record<string, string[]> = {};
  for (const sql of searched) {
    const slow = await scansAndSorts(storage, sql);
    if (slow.length > 0) found[sql] = slow;
  }
  expect(found).toEqual({});
  expect(searched.length).toBeGreaterThan(5);
});
