import type { ProtocolError } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { channels as channelsModule } from '../../src/channels/index.ts';
import { TestChannel } from '../fixtures/channel.ts';
import { type Connection, Connections } from '../fixtures/connections.ts';
import { scansAndSorts } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const limit = 3;
/** A well-formed ID of no channel. */
const nowhere = `chan_${'A'.repeat(22)}`;

const relay = inProcessRelay({ channelSubscriptions: limit });
let board: Connections;
const ann = relay.person('ann');
/** A reader, neither owner nor moderator of any channel. */
const ben = relay.person('ben', ['phone', 'laptop']);
let channels: TestChannel[];
let connection: Connection;

beforeEach(async () => {
  board = new Connections(relay);
  channels = [];
  for (let count = 0; count < limit + 1; count += 1) {
    channels.push(await TestChannel.create(relay, ann));
  }
  connection = await board.connect(ben, 'laptop');
});

const subscribe = (params: unknown, by = connection) =>
  relay.call('channel.subscribe', params, { connection: by });
const channel = (index: number) => channels[index] as TestChannel;
const ids = (...indexes: number[]) => indexes.map((index) => channel(index).channelId);
/** Returns code and data of a refused call. */
const refusal = async (call: Promise<unknown>) => {
  const error: ProtocolError = await call.then(
    () => Promise.reject(new Error('it was accepted')),
    (refused) => refused,
  );
  return { code: error.code, data: error.data };
};
const refused = (channel_ids: unknown) => refusal(subscribe({ channel_ids }));
const subscribed = () => board.hub.listeners.channel.ids().sort();

describe('06 §9.1: the set', () => {
  test('is replaced as a whole, and can be emptied', async () => {
    expect(await subscribe({ channel_ids: ids(0, 1) })).toBe(null);
    expect(subscribed()).toEqual(ids(0, 1).sort());
    expect(await subscribe({ channel_ids: ids(1, 2) })).toBe(null);
    expect(subscribed()).toEqual(ids(1, 2).sort());
    expect(await subscribe({ channel_ids: [] })).toBe(null);
    expect(subscribed()).toEqual([]);
  });

  test('belongs to one connection', async () => {
    const other = await board.connect(ben);
    await subscribe({ channel_ids: ids(0) });
    await subscribe({ channel_ids: ids(1) }, other);
    await subscribe({ channel_ids: [] });
    expect(subscribed()).toEqual(ids(1));
  });

  test('02 §13: is independent of the connection’s groups', async () => {
    await subscribe({ channel_ids: ids(0) });
    await connection.subscribeGroups();
    expect(subscribed()).toEqual(ids(0));
    await subscribe({ channel_ids: [] });
    expect(await relay.codeOf('group.subscribe', { group_ids: [] }, { connection })).toBe('ok');
  });

  test('02 §13.3: survives a renewal of the session', async () => {
    await subscribe({ channel_ids: ids(0) });
    connection.bound.renew({ ...ben.session('laptop'), id: 'renewed' });
    await channel(0).post();
    expect(connection.hints()).toEqual([['timeline', 1]]);
    // Both count as present: the new session adds none.
    await relay.restart({ channelSubscriptions: 0 });
    await subscribe({ channel_ids: ids(0) });
  });

  test.each(['closes', 'is revoked'] as const)('ends when the connection %s', async (how) => {
    await subscribe({ channel_ids: ids(0, 1) });
    if (how === 'closes') connection.bound.release();
    else connection.bound.revoke();
    expect(subscribed()).toEqual([]);
  });

  test.each([
    ['ends', () => connection.bound.release()],
    ['is revoked', () => connection.bound.revoke()],
    ['expires', () => connection.bound.cap(relay.clock.now())],
  ])('does not outlive a connection that %s while its channels are read', async (_, end) => {
    const { storage } = relay.context;
    const { read } = storage;
    storage.read = async (work) => {
      const found = await read.call(storage, work);
      end();
      return found as never;
    };
    await subscribe({ channel_ids: ids(0) });
    storage.read = read;
    expect(subscribed()).toEqual([]);
  });

  test('02 §18: may contain a closed channel', async () => {
    await channel(0).close();
    await subscribe({ channel_ids: ids(0, 1) });
    expect(subscribed()).toEqual(ids(0, 1).sort());
  });

  test('unknown parameters are ignored (02 §2.5)', async () => {
    await subscribe({ channel_ids: ids(0), extra: 1 });
    expect(subscribed()).toEqual(ids(0));
  });

  test('writes nothing', async () => {
    const before = await relay.dump();
    await subscribe({ channel_ids: ids(0, 1) });
    expect(await relay.dump()).toEqual(before);
  });
});

describe('02 §13.2 step 1: errors without data', () => {
  test.each([
    ['missing', undefined],
    ['null', null],
    ['a string', nowhere],
    ['with a number', [1]],
    ['with null', [null]],
    ['with another ID', ['grp_AAAAAAAAAAAAAAAAAAAAAA']],
    ['with too short an ID', [nowhere.slice(0, -1)]],
    ['with too long an ID', [`${nowhere}A`]],
    ['with unused bits set', [`chan_${'A'.repeat(21)}B`]],
  ])('channel_ids %s is bad_request', async (_what, channel_ids) => {
    await subscribe({ channel_ids: ids(0) });
    expect(await refused(channel_ids)).toEqual({ code: 'bad_request', data: undefined });
    expect(subscribed()).toEqual(ids(0));
  });

  test('a channel named twice is bad_request, before it is read', async () => {
    const twice = { code: 'bad_request', data: undefined };
    await subscribe({ channel_ids: ids(0) });
    expect(await refused([...ids(0), ...ids(0)])).toEqual(twice);
    expect(await refused([nowhere, nowhere])).toEqual(twice);
    expect(subscribed()).toEqual(ids(0));
  });

  test('without a session it is unauthorized', async () => {
    const call = relay.call('channel.subscribe', { channel_ids: ids(0) });
    expect(await refusal(call)).toEqual({ code: 'unauthorized', data: undefined });
  });

  test('a dead connection is unauthorized for any parameters', async () => {
    connection.bound.revoke();
    expect(await refused([nowhere])).toEqual({ code: 'unauthorized', data: undefined });
  });

  test('an account session is forbidden', async () => {
    const session = ben.accountSession();
    const call = relay.call('channel.subscribe', { channel_ids: [nowhere] }, { session });
    expect(await refusal(call)).toEqual({ code: 'forbidden', data: undefined });
  });
});

describe('02 §13.1: the count rule', () => {
  const tooMany = { code: 'bad_request', data: undefined };

  test('as many as the limit are accepted, one more is not', async () => {
    await subscribe({ channel_ids: ids(0, 1) });
    await subscribe({ channel_ids: ids(0, 1, 2) });
    expect(await refused(ids(0, 1, 2, 3))).toEqual(tooMany);
    expect(subscribed()).toEqual(ids(0, 1, 2).sort());
    // A replacement in one call stays within the limit.
    await subscribe({ channel_ids: ids(3, 2, 1) });
    expect(subscribed()).toEqual(ids(1, 2, 3).sort());
  });

  test('it is checked before the channels are read', async () => {
    const unknown = ['B', 'C', 'D', 'E'].map((letter) => `chan_${letter.repeat(21)}A`);
    expect(await refused(unknown)).toEqual(tooMany);
  });

  test('after the limit is lowered, additions are refused and present channels stay', async () => {
    await subscribe({ channel_ids: ids(0, 1, 2) });
    await relay.restart({ channelSubscriptions: 1 });
    expect(await refused(ids(0, 1, 3))).toEqual(tooMany);
    expect(await refused(ids(0, 3))).toEqual(tooMany);
    expect(subscribed()).toEqual(ids(0, 1, 2).sort());
    await subscribe({ channel_ids: ids(2, 1, 0) });
    await subscribe({ channel_ids: ids(0, 1) });
    // A channel that was removed counts as an addition when it comes back.
    expect(await refused(ids(0, 1, 2))).toEqual(tooMany);
    await subscribe({ channel_ids: ids(3) });
    expect(subscribed()).toEqual(ids(3));
  });

  test('with a limit of 0 a set can be kept, reduced and cleared', async () => {
    await subscribe({ channel_ids: ids(0, 1) });
    await relay.restart({ channelSubscriptions: 0 });
    expect(await refused(ids(2))).toEqual(tooMany);
    for (const kept of [ids(1, 0), ids(1), []]) await subscribe({ channel_ids: kept });
    expect(await refused(ids(1))).toEqual(tooMany);
  });

  test('concurrent calls are handled one after another', async () => {
    const outcomes = await Promise.all(
      [ids(0, 1), ids(2, 3), ids(0, 1, 2, 3), ids(2)].map((channel_ids) =>
        relay.codeOf('channel.subscribe', { channel_ids }, { connection }),
      ),
    );
    expect(outcomes).toEqual(['ok', 'ok', 'bad_request', 'ok']);
    expect(subscribed()).toEqual(ids(2));
  });

  test('concurrent calls are answered in order, even if the later one is read sooner', async () => {
    const { storage } = relay.context;
    const { read } = storage;
    const [looked, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    storage.read = async (work) => {
      storage.read = read;
      looked.resolve();
      await slow.promise;
      return (await read.call(storage, work)) as never;
    };
    const answered: string[] = [];
    const calls = [ids(0, 1), ids(2)].map(async (channel_ids) => {
      await subscribe({ channel_ids });
      answered.push(...channel_ids);
    });
    await looked.promise;
    // A call that did not wait would be answered before this one.
    await relay.call('channel.read', { channel_id: ids(0)[0] }, { session: ann.session() });
    expect(answered).toEqual([]);
    slow.resolve();
    await Promise.all(calls);
    expect(answered).toEqual(ids(0, 1, 2));
    expect(subscribed()).toEqual(ids(2));
  });
});

describe('06 §9.1 step 3: not_found names every channel that cannot be subscribed', () => {
  const elsewhere = `chan_${'B'.repeat(21)}A`;

  test.each([
    ['one', () => [nowhere], [nowhere]],
    ['one among existing ones', () => [...ids(1), nowhere, ...ids(0)], [nowhere]],
    ['several', () => [elsewhere, ...ids(1), nowhere], [elsewhere, nowhere]],
  ])('%s', async (_what, wanted, channel_ids) => {
    await subscribe({ channel_ids: ids(0) });
    const before = await relay.dump();
    expect(await refused(wanted())).toEqual({ code: 'not_found', data: { channel_ids } });
    expect(await relay.dump()).toEqual(before);
    expect(subscribed()).toEqual(ids(0));
    await channel(0).post();
    expect(connection.hints()).toEqual([['timeline', 1]]);
  });

  test('if storage fails, the set stays as it was', async () => {
    await subscribe({ channel_ids: ids(0) });
    relay.faults.beforeStatement = () => {
      throw new Error('away');
    };
    expect(await refused(ids(1, 2))).toEqual({ code: 'internal_error', data: undefined });
    delete relay.faults.beforeStatement;
    expect(subscribed()).toEqual(ids(0));
    await subscribe({ channel_ids: ids(1, 2) });
    expect(subscribed()).toEqual(ids(1, 2).sort());
  });
});

test('subscribing needs one indexed statement, and so does resync', async () => {
  await channel(0).post();
  const { storage } = relay.context;
  const statements: string[] = [];
  relay.faults.beforeStatement = (sql) => void statements.push(sql);
  await subscribe({ channel_ids: ids(0, 1) });
  await storage.read(async (tx) => {
    await channelsModule.subscriptionResync?.notices(tx, ids(0, 1), { withLists: true });
  });
  delete relay.faults.beforeStatement;
  const searched = statements.filter((each) => /^\s*SELECT .* FROM/s.test(each));
  expect(searched).toHaveLength(2);
  for (const sql of new Set(searched)) expect(await scansAndSorts(storage, sql)).toEqual([]);
});
