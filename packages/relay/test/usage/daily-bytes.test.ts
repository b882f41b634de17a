/** 02 §18: what accounts, groups and channels store in a day. */
import { accountSigner, managementHash } from '@posthouse/protocol';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { RelayContext, StoredBytes } from '../../src/context.ts';
import { DailyByteCounts, dailyBytesJob } from '../../src/usage/index.ts';
import { TestChannel } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';
import { network } from '../support/modules.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const mebibyte = 1_048_576;
const secondsOfDay = 86_400;

/** Sends a message of an account to itself. */
const send = (by = ann) =>
  relay.call('message.send', by.message(by, { text: 'x'.repeat(1_000) }), {
    session: by.session(),
  });
const tomorrow = () => secondsOfDay - (relay.clock.now() % secondsOfDay);
const full = () => ({ code: 'rate_limited', data: { retry_after: tomorrow() } });

describe('02 §18: an account', () => {
  test('stores up to its bytes of a day, reads all the time, and others go on', async () => {
    await relay.restart({ accountDailyBytes: 3_000 });
    await send();
    await send();
    const before = await relay.dump();
    await expect(send()).rejects.toMatchObject(full());
    expect(await relay.dump()).toEqual(before);
    const session = ann.session();
    await relay.call('message.timeline.sync', {}, { session });
    await send(ben);
    relay.clock.advance(tomorrow() - 1);
    await expect(send()).rejects.toMatchObject(full());
    relay.clock.advance(1);
    await send();
  });

  test('removes a lost device when its day is used up', async () => {
    await relay.restart({ accountDailyBytes: 1 });
    await send();
    await expect(send()).rejects.toMatchObject(full());
    const state = await ann.state({ devices: ['phone'] });
    const options = { session: ann.session() };
    expect(await relay.codeOf('device.state.publish', state, options)).toBe('ok');
    const other = await ann.state({ devices: ['phone'] });
    const asAccount = { session: ann.accountSession() };
    expect(await relay.codeOf('device.state.publish', other, asAccount)).toBe('rate_limited');
  });

  test('a refused call counts nothing', async () => {
    await relay.restart({ accountDailyBytes: 1 });
    const wrong = { ...ann.message(ann), recipient_boxes: [] };
    const options = { session: ann.session() };
    expect(await relay.codeOf('message.send', wrong, options)).not.toBe('ok');
    await send();
  });
});

describe('02 §18: a group', () => {
  let group: TestGroup;
  beforeEach(async () => {
    group = await TestGroup.create(relay, ann);
    await group.admit(ben);
    await relay.restart({ groupDailyBytes: 1 });
  });

  test('takes no more messages today; it is managed, and the sender writes elsewhere', async () => {
    await group.send(ben, 1);
    await expect(group.send(ann, 1)).rejects.toMatchObject(full());
    await send(ann);
    await relay.restart({ groupDailyBytes: 1e15, accountDailyBytes: 1 });
    await send(ann);
    // What removes is refused for no reason of room.
    vi.spyOn(relay.context.disk, 'isLow').mockReturnValue(true);
    await expect(send(ben)).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    await group.ban([ben]);
    await relay.restart({ groupDailyBytes: 1 });
    relay.clock.advance(tomorrow());
    await group.send(ann, 2);
  });

  test('bans and unbans of accounts that no one knows have an end', async () => {
    const strangers = (count: number, first: number) =>
      Array.from({ length: count }, (_, at) => {
        const seed = new Uint8Array(32);
        new DataView(seed.buffer).setUint32(0, first + at);
        return accountSigner(network, seed).account;
      }).sort();
    await relay.restart({ accountDailyBytes: 1, groupStoredBytes: 1 });
    await send(ann);
    const change = async (kind: 'group.member.ban' | 'group.member.unban', accounts: string[]) => {
      const link = group.link(kind, { accounts } as never, {});
      const code = await relay.codeOf(kind, link as never, { session: ann.session() });
      if (code === 'ok') group.head = managementHash(network, link as never);
      return code;
    };
    // A long list is no removal, and neither is an unban.
    expect(await change('group.member.ban', strangers(400, 1))).toBe('rate_limited');
    const few = strangers(20, 1_000);
    expect(await change('group.member.ban', few)).toBe('ok');
    expect(await change('group.member.unban', few)).toBe('rate_limited');
  });

  test('a stranger who names it in a call of another kind uses nothing of its day up', async () => {
    const { groupId } = group;
    const session = ben.session();
    const named = { ...ben.message(ben), group_id: groupId, channel_id: 'c' };
    expect(await relay.codeOf('message.send', named, { session })).toBe('ok');
    await relay.restart({ groupDailyBytes: 1, accountDailyBytes: 1e15 });
    const long = { ...ben.message(ben), group_id: 'x'.repeat(mebibyte + 1) };
    expect(await relay.codeOf('message.send', long, { session })).toBe('ok');
    const owners = (await relay.rows('daily_bytes')).map(({ owner }) => owner);
    expect(owners).toEqual([`account ${ben.account}`]);
    await group.send(ben, 1);
  });

  test('repeats of one message count for it once, and for their account each time', async () => {
    const message = group.message(ben, 1);
    const { length } = JSON.stringify(message);
    await relay.restart({ groupDailyBytes: 2 * length, accountDailyBytes: 4 * length });
    const repeat = () => relay.codeOf('group.message.send', message, { session: ben.session() });
    for (let sent = 1; sent <= 4; sent += 1) expect(await repeat()).toBe('ok');
    expect(await repeat()).toBe('rate_limited');
    await group.send(ann, 1);
  });

  test('a stranger uses nothing of its day up', async () => {
    const message = group.message(ben, 1);
    const stranger = await relay.register('stranger');
    const options = { session: stranger.session() };
    expect(await relay.codeOf('group.message.send', message, options)).not.toBe('ok');
    await group.send(ben, 1);
  });
});

test('02 §18: a channel takes no more posts today; it is managed, and posts are deleted', async () => {
  const channel = await TestChannel.create(relay, ann);
  await relay.restart({ channelDailyBytes: 1 });
  const sequence = await channel.publish(channel.newPost());
  await expect(channel.publish(channel.newPost())).rejects.toMatchObject(full());
  await channel.update({ name: 'Another name' });
  await relay.restart({ channelDailyBytes: 1e15, accountDailyBytes: 1 });
  await channel.publish(channel.newPost());
  await expect(channel.publish(channel.newPost())).rejects.toMatchObject(full());
  await channel.delete(sequence);
});

describe('02 §18: the total of an account', () => {
  const of = (bytes: number, isLimited = true): StoredBytes => ({
    ...{ account: 'a', group: undefined, channel: undefined, bytes, isLimited },
  });
  const counts = () =>
    new DailyByteCounts({
      ...relay.context,
      limits: { ...relay.context.limits, accountStoredBytes: 4 * mebibyte },
    });
  const tooMany = 'the account has stored too many bytes';
  /** The beginning of a day. */
  const nextDay = () => relay.clock.advance(tomorrow());

  test('counts all processes and the days for which records are kept, and gives them back', async () => {
    nextDay();
    const [one, other] = [counts(), counts()];
    await one.add(of(2 * mebibyte), true);
    nextDay();
    await other.add(of(mebibyte), true);
    other.require(of(1));
    await one.add(of(mebibyte), true);
    expect(() => one.require(of(1))).toThrow(tooMany);
    expect(() => one.require(of(1, false))).not.toThrow();
    const rows = await relay.rows('daily_bytes');
    expect(rows.reduce((sum, { bytes }) => sum + (bytes as number), 0)).toBe(4 * mebibyte);
    // A process that has not saved a count today does not know, and learns it with the first MiB.
    await other.add(of(mebibyte - 1), true);
    other.require(of(1));
    await other.add(of(1), true);
    expect(() => other.require(of(1))).toThrow(tooMany);
    // The first day's two MiB were stored 30 days and less than a day ago: the last one that counts.
    relay.clock.advance(29 * secondsOfDay);
    await one.add(of(mebibyte), true);
    expect(() => one.require(of(1))).toThrow(tooMany);
    nextDay();
    await one.add(of(mebibyte), true);
    expect(() => one.require(of(1))).toThrow(tooMany);
    nextDay();
    await one.add(of(mebibyte), true);
    one.require(of(1));
  });

  test('has the attachments of the account, and an upload needs room in it', async () => {
    const { storage } = relay.context;
    await storage.write('account:a', (tx) =>
      tx.run('INSERT INTO blob_usage (account, counted) VALUES (?, ?)', 'a', 3 * mebibyte),
    );
    const one = counts();
    one.require(of(1));
    await one.add(of(mebibyte), true);
    expect(() => one.require(of(1))).toThrow(tooMany);
    const room = (account: string) => storage.read((tx) => one.readRoom(tx, account));
    expect([await room('a'), await room('b')]).toEqual([0, 4 * mebibyte]);
  });
});

describe('02 §18: counts', () => {
  const owner: StoredBytes = {
    ...{ account: 'a', group: undefined, channel: undefined },
    ...{ bytes: mebibyte / 2, isLimited: true },
  };
  const counts = (owners?: number, parts: Partial<RelayContext> = {}) =>
    new DailyByteCounts(
      {
        ...relay.context,
        limits: { ...relay.context.limits, accountDailyBytes: 2 * mebibyte },
        ...parts,
      },
      owners,
    );
  const of = (account: string, bytes: number): StoredBytes => ({ ...owner, account, bytes });
  const tooMany = 'the account stored too many bytes today';

  test('are stored after each MiB, and hold after a restart and in other processes', async () => {
    const first = counts();
    expect(first.add(owner, true)).toBe(undefined);
    expect(await relay.rows('daily_bytes')).toEqual([]);
    await first.add(owner, true);
    const day = Math.floor(relay.clock.now() / secondsOfDay);
    expect(await relay.rows('daily_bytes')).toEqual([{ owner: 'account a', day, bytes: mebibyte }]);
    const second = counts();
    second.require(owner);
    await second.add(owner, true);
    await second.add(owner, true);
    expect(() => second.require(owner)).toThrow('the account stored too many bytes today');
    // What removes has a part more, not less than a MiB.
    const removal = { ...owner, isLimited: false };
    expect(() => second.require(removal)).not.toThrow();
    await second.add(removal, true);
    expect(() => second.require(removal)).not.toThrow();
    await second.add(removal, true);
    expect(() => second.require(removal)).toThrow('the account stored too many bytes today');
    // The first process learns of it when it saves again.
    first.require(owner);
    await first.add(owner, true);
    await first.add(owner, true);
    expect(() => first.require(owner)).toThrow('the account stored too many bytes today');
  });

  test('of an account that stored a MiB stay for the day, however many others store', async () => {
    const few = counts(2);
    await few.add(of('a', mebibyte), true);
    await few.add(of('a', mebibyte - 1), true);
    for (const other of ['b', 'c', 'd']) await few.add(of(other, 1), true);
    await few.add(of('a', 1), true);
    expect(() => few.require(owner)).toThrow(tooMany);
    relay.clock.advance(tomorrow());
    few.require(owner);
  });

  test('of an account that is forgotten are stored first, if they are worth it', async () => {
    const few = counts(2);
    for (const [account, bytes] of [
      ['a', 70_000],
      ['b', 10],
      ['c', 10],
      ['d', 10],
    ] as const) {
      await few.add(of(account, bytes), true);
    }
    expect(await relay.rows('daily_bytes')).toMatchObject([{ owner: 'account a', bytes: 70_000 }]);
    // They count again as soon as the account is looked up in storage.
    await few.add(of('a', 2 * mebibyte - 70_000), true);
    expect(() => few.require(owner)).toThrow(tooMany);
  });

  test('that cannot be stored fail no call, go on in memory, and are stored later', async () => {
    let isBroken = true;
    const lines: object[] = [];
    const { storage, log } = relay.context;
    const broken = counts(2, {
      storage: {
        ...storage,
        write: (async (...args: Parameters<typeof storage.write>) => {
          if (isBroken && args[0] === 'daily account a') throw new Error('no connection');
          return await storage.write(...args);
        }) as typeof storage.write,
      },
      log: Object.assign(Object.create(log), { warn: (line: object) => lines.push(line) }),
    });
    await broken.add(of('a', mebibyte), true);
    await broken.add({ ...of('a', mebibyte), group: 'g' }, true);
    expect(() => broken.require(owner)).toThrow(tooMany);
    expect(lines).toHaveLength(1);
    // The call's other owners are stored all the same.
    expect(await relay.rows('daily_bytes')).toMatchObject([{ owner: 'group g', bytes: mebibyte }]);
    isBroken = false;
    await broken.add(of('a', 1), true);
    expect(await relay.rows('daily_bytes')).toMatchObject([
      { owner: 'account a', bytes: 2 * mebibyte + 1 },
      { owner: 'group g' },
    ]);
  });

  test('of days that no total needs are removed, however many there are', async () => {
    const today = Math.floor(relay.clock.now() / secondsOfDay);
    const day = today - 30;
    await relay.context.storage.write('daily', async (tx) => {
      for (let count = 0; count <= 400; count += 1) {
        await tx.run('INSERT INTO daily_bytes VALUES (?, ?, ?)', `account ${count}`, day - 1, 1);
      }
      await tx.run('INSERT INTO daily_bytes VALUES (?, ?, ?)', 'account today', day, 1);
    });
    const next = await dailyBytesJob.run(relay.context, new AbortController().signal, () => ({
      [Symbol.dispose]: () => {},
    }));
    expect(next).toBe((today + 1) * secondsOfDay);
    expect(await relay.rows('daily_bytes')).toEqual([{ owner: 'account today', day, bytes: 1 }]);
  });
});
