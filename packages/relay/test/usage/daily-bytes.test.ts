/** 02 §18: what accounts, groups and channels store in a day. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { StoredBytes } from '../../src/context.ts';
import { DailyByteCounts, dailyBytesJob } from '../../src/usage/index.ts';
import { TestChannel } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

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
    await group.ban([ben]);
    relay.clock.advance(tomorrow());
    await group.send(ann, 2);
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

describe('02 §18: counts', () => {
  const owner: StoredBytes = {
    ...{ account: 'a', group: undefined, channel: undefined },
    ...{ bytes: mebibyte / 2, isRefused: true, isContent: false },
  };
  const counts = () =>
    new DailyByteCounts({
      ...relay.context,
      limits: { ...relay.context.limits, accountDailyBytes: 2 * mebibyte },
    });

  test('are stored after each MiB, and hold after a restart and in other processes', async () => {
    const first = counts();
    expect(first.add(owner)).toBe(undefined);
    expect(await relay.rows('daily_bytes')).toEqual([]);
    await first.add(owner);
    const day = Math.floor(relay.clock.now() / secondsOfDay);
    expect(await relay.rows('daily_bytes')).toEqual([{ owner: 'account a', day, bytes: mebibyte }]);
    const second = counts();
    second.require(owner);
    await second.add(owner);
    await second.add(owner);
    expect(() => second.require(owner)).toThrow('the account stored too many bytes today');
    expect(() => second.require({ ...owner, isRefused: false })).not.toThrow();
    // The first process learns of it when it saves again.
    first.require(owner);
    await first.add(owner);
    await first.add(owner);
    expect(() => first.require(owner)).toThrow('the account stored too many bytes today');
  });

  test('of earlier days are removed, however many there are', async () => {
    const day = Math.floor(relay.clock.now() / secondsOfDay);
    await relay.context.storage.write('daily', async (tx) => {
      for (let count = 0; count <= 400; count += 1) {
        await tx.run('INSERT INTO daily_bytes VALUES (?, ?, ?)', `account ${count}`, day - 1, 1);
      }
      await tx.run('INSERT INTO daily_bytes VALUES (?, ?, ?)', 'account today', day, 1);
    });
    const next = await dailyBytesJob.run(relay.context, new AbortController().signal, () => ({
      [Symbol.dispose]: () => {},
    }));
    expect(next).toBe((day + 1) * secondsOfDay);
    expect(await relay.rows('daily_bytes')).toEqual([{ owner: 'account today', day, bytes: 1 }]);
  });
});
