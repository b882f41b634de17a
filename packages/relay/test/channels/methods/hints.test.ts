import { beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryBus } from '../../../src/notifications/memory-bus.ts';
import { attachment, TestChannel, text } from '../../fixtures/channel.ts';
import { type Connection, Connections } from '../../fixtures/connections.ts';
import type { Hint } from '../../fixtures/hints.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

const patience = { timeout: 10_000, interval: 5 };

const relay = inProcessRelay();
let board: Connections;
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const cem = relay.person('cem', ['phone', 'laptop']);
/** Owned by ann, moderated by ben; its head is the post at 1. */
let channel: TestChannel;
/** The connection of a reader. */
let follower: Connection;

beforeEach(async () => {
  board = new Connections(relay);
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  await channel.post({ body: text('first'), attachments: [attachment()] });
  follower = await board.withChannels(cem, channel);
});

const timeline = (head: number): Hint => ['timeline', head];
const notice = (head: number, of = channel) =>
  ({ kind: 'channel-timeline', channel: of.channelId, head }) as const;
/** A bus whose notices the test publishes itself, later than the write. */
const lateBus = () =>
  new MemoryBus((error) => {
    throw error;
  });

describe('06 §9.2: channel.timeline.changed', () => {
  const causes: [string, () => Promise<unknown>][] = [
    ['channel.update', () => channel.update({ name: 'other' })],
    ['channel.close', () => channel.close()],
    ['channel.post', () => channel.post()],
    ['channel.post of a moderator', () => channel.post(undefined, { by: ben })],
    ['channel.post.edit', () => channel.edit(1, { body: text('other') })],
    ['channel.post.delete', () => channel.delete(1)],
  ];
  test.each(causes)('%s notifies every subscriber once', async (_name, act) => {
    const others = await Promise.all(
      [ann, ben, cem].map((each) => board.withChannels(each, channel)),
    );
    await act();
    for (const each of [follower, ...others]) expect(each.hints()).toEqual([timeline(2)]);
  });

  const silent: [string, () => Promise<unknown>][] = [
    ['a repeated post', () => channel.publish(post)],
    ['an edit without effect', () => channel.edit(1, { body: text('first') })],
    ['a refused post', () => channel.post(undefined, { by: cem })],
    ['a refused edit', () => channel.edit(1, { body: null, attachments: null })],
    ['a refused deletion', () => channel.delete(7)],
    ['a refused update', () => channel.update({ name: ' ' })],
    ['a refused closure', () => channel.close({ by: ben })],
    ['channel.read', () => channel.read()],
    ['channel.resolve', () => channel.resolve()],
    [
      'a report',
      () =>
        relay.call(
          'channel.post.report',
          { channel_id: channel.channelId, target_sequence: 1, reason: 'spam' },
          { session: cem.session() },
        ),
    ],
  ];
  let post: ReturnType<TestChannel['newPost']>;
  test.each(silent)('06 §5.4: %s notifies no subscriber', async (name, act) => {
    post = channel.newPost();
    await channel.publish(post);
    expect(follower.hints()).toEqual([timeline(2)]);
    const outcome = await act().then(
      () => 'accepted',
      () => 'refused',
    );
    expect(outcome).toBe(name.startsWith('a refused') ? 'refused' : 'accepted');
    expect(follower.hints()).toEqual([]);
  });

  test('a write that does not become durable notifies no subscriber', async () => {
    relay.faults.beforeCommit = () => {
      throw new Error('power cut');
    };
    const next = channel.newPost();
    await expect(channel.publish(next)).rejects.toHaveProperty('code', 'internal_error');
    delete relay.faults.beforeCommit;
    expect(follower.hints()).toEqual([]);
    await channel.publish(next);
    expect(follower.hints()).toEqual([timeline(2)]);
  });

  test('the hint is sent after the commit: a notified client can read the event', async () => {
    const seen: Promise<number | undefined>[] = [];
    relay.context.bus.subscribe(() => {
      seen.push(channel.sequences({ after: 1 }, { by: cem }).then((sequences) => sequences.at(-1)));
    });
    await channel.post();
    expect(await Promise.all(seen)).toEqual([2]);
  });

  test('only connections that subscribed the channel are notified', async () => {
    const other = await TestChannel.create(relay, ann);
    const idle = await board.connect(cem, 'laptop');
    await other.post();
    for (const each of [follower, idle]) expect(each.hints()).toEqual([]);
    await follower.subscribeChannels(channel, other);
    await other.post();
    expect(follower.hints(other)).toEqual([timeline(2)]);
    await follower.subscribeChannels(channel);
    await other.post();
    await follower.subscribeChannels();
    await channel.post();
    expect(follower.hints()).toEqual([]);
  });

  test('02 §18: after a channel was closed no hint is sent', async () => {
    await channel.close();
    const late = await board.withChannels(ben, channel);
    await expect(channel.post()).rejects.toHaveProperty('code', 'state_conflict');
    expect(late.hints()).toEqual([]);
  });

  test('the text of the notification is the one of 02 §12.1', async () => {
    await channel.post();
    expect(follower.texts()).toEqual([
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'channel.timeline.changed',
        params: { channel_id: channel.channelId, head: 2 },
      }),
    ]);
  });
});

describe('02 §13.3: a new subscription gets no hint of earlier events', () => {
  test('at a process that gets the notice late', async () => {
    const bus = lateBus();
    const slow = new Connections(relay, bus);
    const early = await slow.withChannels(cem, channel);
    await channel.post();
    const late = await slow.withChannels(ben, channel);
    bus.publish([notice(2)]);
    expect(early.hints()).toEqual([timeline(2)]);
    expect(late.hints()).toEqual([]);
    await channel.post();
    bus.publish([notice(3)]);
    expect(late.hints()).toEqual([timeline(3)]);
  });

  test('a subscription that stays in the set gets no hint twice', async () => {
    await channel.post();
    expect(follower.hints()).toEqual([timeline(2)]);
    const other = await TestChannel.create(relay, ann);
    for (const set of [[channel, other], [channel]]) await follower.subscribeChannels(...set);
    board.hub.notify(notice(2));
    expect(follower.hints()).toEqual([]);
  });

  test('a subscription that stays in the set gets a hint it has not had yet', async () => {
    const bus = lateBus();
    const late = await new Connections(relay, bus).withChannels(cem, channel);
    await channel.post();
    await late.subscribeChannels(channel);
    bus.publish([notice(2)]);
    expect(late.hints()).toEqual([timeline(2)]);
  });

  test('a subscription that was removed and added again starts at the current head', async () => {
    await follower.subscribeChannels();
    await channel.post();
    await follower.subscribeChannels(channel);
    board.hub.notify(notice(2));
    expect(follower.hints()).toEqual([]);
    await channel.post();
    expect(follower.hints()).toEqual([timeline(3)]);
  });
});

describe('a post during a subscribe call is not lost', () => {
  /** Runs `act` after the channels were read and before they are subscribed. */
  const between = (act: () => Promise<unknown>) => {
    const { storage } = relay.context;
    const { read } = storage;
    storage.read = async (work) => {
      const found = await read.call(storage, work);
      storage.read = read;
      await act();
      return found as never;
    };
  };

  test('for the first subscriber of the channel', async () => {
    await follower.subscribeChannels();
    between(() => channel.post());
    await follower.subscribeChannels(channel);
    expect(follower.hints()).toEqual([timeline(2)]);
  });

  test('for one of several subscribers', async () => {
    const second = await board.connect(ben);
    between(() => channel.post());
    await second.subscribeChannels(channel);
    for (const each of [follower, second]) expect(each.hints()).toEqual([timeline(2)]);
  });

  test('for a subscriber that joins when the last other one has left', async () => {
    const second = await board.connect(ben);
    between(async () => {
      await follower.subscribeChannels();
      await channel.post();
    });
    await second.subscribeChannels(channel);
    expect(second.hints()).toEqual([timeline(2)]);
  });

  test('for a connection that had subscribed before, and it is notified once', async () => {
    between(() => channel.post());
    await follower.subscribeChannels(channel);
    expect(follower.hints()).toEqual([timeline(2)]);
  });

  test('if the subscription is refused, no hint is stored', async () => {
    await follower.subscribeChannels();
    const lost = { channelId: `chan_${'A'.repeat(22)}` };
    between(() => channel.post());
    await expect(follower.subscribeChannels(channel, lost)).rejects.toHaveProperty(
      'code',
      'not_found',
    );
    expect(follower.hints()).toEqual([]);
    expect(board.hub.listeners.channel.ids()).toEqual([]);
    await follower.subscribeChannels(channel);
    expect(follower.hints()).toEqual([]);
  });
});

describe('02 §12.3: a connection without a valid session gets no hint', () => {
  test('02 §10.3: at once after its device was removed', async () => {
    const laptop = await board.connect(cem, 'laptop');
    await laptop.subscribeChannels(channel);
    await cem.publishState(await cem.state({ devices: ['phone'] }));
    follower.hints();
    await channel.post();
    expect(laptop.hints()).toEqual([]);
    expect(laptop.bound.dead).toBe(true);
    expect(follower.hints()).toEqual([timeline(2)]);
  });

  test('after its session expired, waiting hints included', async () => {
    follower.isSlow = true;
    await channel.post();
    await channel.post();
    expect(follower.hints()).toEqual([timeline(2)]);
    follower.bound.cap(relay.clock.now());
    follower.drain();
    await channel.post();
    expect(follower.hints()).toEqual([]);
  });

  test('a former moderator still gets hints: the right to write does not matter', async () => {
    await channel.update({ moderators: [] });
    const former = await board.withChannels(ben, channel);
    await channel.post();
    expect(former.hints()).toEqual([timeline(3)]);
  });
});

describe('02 §12.3: hints are merged', () => {
  test('a slow reader gets the newest hint, not a queue', async () => {
    follower.isSlow = true;
    for (let count = 0; count < 20; count += 1) await channel.post();
    expect(follower.hints()).toEqual([timeline(2)]);
    follower.drain();
    expect(follower.hints()).toEqual([timeline(21)]);
    follower.drain();
    expect(follower.hints()).toEqual([]);
  });

  test('hints of different channels do not replace each other', async () => {
    const other = await TestChannel.create(relay, ann);
    await follower.subscribeChannels(channel, other);
    follower.isSlow = true;
    for (let count = 0; count < 3; count += 1) {
      await channel.post();
      await other.post();
    }
    expect(follower.hints()).toEqual([timeline(2)]);
    follower.drain();
    expect(follower.hints().sort()).toEqual([timeline(3), timeline(4)]);
  });

  test('a waiting hint of a channel that is unsubscribed is dropped, others are not', async () => {
    const other = await TestChannel.create(relay, ann);
    await follower.subscribeChannels(channel, other);
    follower.isSlow = true;
    for (let count = 0; count < 2; count += 1) {
      await channel.post();
      await other.post();
    }
    follower.hints();
    await follower.subscribeChannels(other);
    follower.drain();
    expect(follower.hints()).toEqual([timeline(2)]);
  });
});

describe('while notices may be missed, recipients are checked in storage', () => {
  let bus: MemoryBus & { isConnected: boolean };
  let away: Connections;

  beforeEach(() => {
    bus = Object.assign(lateBus(), { isShared: true, isConnected: false });
    away = new Connections(relay, bus);
  });

  test('only connections with a valid session are notified', async () => {
    const [stays, goes] = [
      await away.withChannels(cem, channel),
      await away.connect(cem, 'laptop'),
    ];
    await goes.subscribeChannels(channel);
    await cem.publishState(await cem.state({ devices: ['phone'] }));
    bus.publish([notice(2)]);
    await vi.waitFor(() => expect(stays.hints()).toEqual([timeline(2)]), patience);
    expect(goes.hints()).toEqual([]);
    expect(goes.bound.dead).toBe(true);
    expect(stays.bound.dead).toBe(false);
  });

  test('a connection whose session was renewed during the check is notified', async () => {
    const renewed = await away.withChannels(cem, channel);
    away.afterLook = () => {
      renewed.bound.renew({ ...cem.session(), id: 'renewed' });
    };
    await relay.context.storage.write('test', (tx) => tx.run('DELETE FROM auth_sessions'));
    bus.publish([notice(2)]);
    await vi.waitFor(() => expect(renewed.hints()).toEqual([timeline(2)]), patience);
  });

  test('a connection that unsubscribes during the check is not notified', async () => {
    const [gone, stays] = [
      await away.withChannels(cem, channel),
      await away.withChannels(ben, channel),
    ];
    away.afterLook = () => gone.subscribeChannels();
    bus.publish([notice(2)]);
    await vi.waitFor(() => expect(stays.hints()).toEqual([timeline(2)]), patience);
    expect(gone.hints()).toEqual([]);
  });

  test('any number of heads during a check cause one more check', async () => {
    const stays = await away.withChannels(cem, channel);
    let looks = 0;
    away.beforeLook = () => {
      looks += 1;
      if (looks === 1) bus.publish([3, 4, 5].map((head) => notice(head)));
    };
    bus.publish([notice(2)]);
    const heard: Hint[] = [];
    await vi.waitFor(() => {
      heard.push(...stays.hints());
      expect(heard).toEqual([timeline(2), timeline(5)]);
    }, patience);
    expect(looks).toBe(2);
  });

  test('connections are notified when storage can be read again', async () => {
    const stays = await away.withChannels(cem, channel);
    const { metrics } = relay.context;
    away.beforeLook = () => Promise.reject(new Error('away'));
    bus.publish([notice(2)]);
    await vi.waitFor(() => expect(metrics.value('hints_delayed')).toBe(1), patience);
    expect(stays.hints()).toEqual([]);
    away.beforeLook = () => {};
    relay.clock.advance(2);
    await vi.waitFor(() => expect(stays.hints()).toEqual([timeline(2)]), patience);
  });
});
