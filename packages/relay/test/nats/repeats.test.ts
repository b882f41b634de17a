/**
 * What a repeated call publishes. The first call is made at a process without NATS: it commits and
 * its notices reach no other process, as if it had died between its commit and its notices.
 */
import type { MethodName } from '@posthouse/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { TestChannel } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { withoutNats } from '../support/nats.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';
import { startApart } from './processes-apart.ts';

const title = `a repeated call at another process (${withoutNats ?? 'real'})`;

describe.skipIf(withoutNats !== undefined)(title, () => {
  const parts = new AsyncDisposableStack();
  /** Cut off from NATS. */
  let a: ServedRelay;
  let b: ServedRelay;

  beforeAll(async () => {
    ({ a, b } = await startApart(parts, { groups: true, channels: true }));
  });
  afterAll(() => parts.disposeAsync());

  let people = 0;
  let ann: Person;
  let ben: Person;
  let group: TestGroup;
  let channel: TestChannel;

  beforeEach(async () => {
    people += 1;
    ann = await a.register(`ann ${people}`, ['phone', 'laptop']);
    ben = await a.register(`ben ${people}`);
    group = await TestGroup.create(a, ann);
    await group.admit(ben);
    channel = await TestChannel.create(a, ann);
  });

  const callAt = async (process: ServedRelay, [by, method, params]: SignedCall) => {
    const { token } =
      method === 'device.state.publish'
        ? await process.logInAccount(by)
        : await process.logInDevice(by);
    return codeOf(await process.http().call(method, params, { token }));
  };

  /** Waits for a notification, past others. */
  const arrives = async (socket: WebSocketClient, method: string) => {
    while ((await socket.notification()).method !== method);
  };

  /** A method as its caller signed it. */
  type SignedCall = readonly [by: Person, method: MethodName, params: object];

  const cases: readonly {
    readonly title: string;
    readonly call: () => SignedCall | Promise<SignedCall>;
    readonly hears: string;
    readonly repeat: string;
  }[] = [
    {
      title: '04 §19: a message to oneself',
      call: () => [ann, 'message.send', ann.message(ann)],
      hears: 'message.timeline.changed',
      repeat: 'ok',
    },
    {
      title: '04 §19: a message of another account',
      call: () => [ben, 'message.send', ben.message(ann, { authorization: ann.grant(ben) })],
      hears: 'message.timeline.changed',
      repeat: 'ok',
    },
    {
      title: '03 §6: a device state',
      call: async () => [ann, 'device.state.publish', await ann.state()],
      hears: 'device.state.changed',
      repeat: 'ok',
    },
    {
      title: '05 §15.2: a message to a group',
      call: () => [ben, 'group.message.send', group.message(ben, 1)],
      hears: 'group.timeline.changed',
      repeat: 'ok',
    },
    {
      title: '05 §15.2: an event of a group, whose repeat is refused',
      call: () => [ann, 'group.update', group.link('group.update', { name: 'other' })],
      hears: 'group.timeline.changed',
      repeat: 'state_conflict',
    },
    {
      title: '05 §15.3: an application',
      call: async () => {
        const cem = await a.register(`cem ${people}`);
        return [cem, 'group.application.submit', group.application(cem, await group.invite())];
      },
      hears: 'group.application.changed',
      repeat: 'ok',
    },
    {
      title: '06 §9.2: a post',
      call: () => [ann, 'channel.post', channel.newPost()],
      hears: 'channel.timeline.changed',
      repeat: 'ok',
    },
    {
      title: '06 §9.2: a descriptor, whose repeat is refused',
      call: () => [ann, 'channel.update', channel.nextDescriptor({ name: 'other' })],
      hears: 'channel.timeline.changed',
      repeat: 'state_conflict',
    },
  ];

  test.each(cases)('$title: its hints are sent', async ({ call, hears, repeat }) => {
    const signed = await call();
    const { groupId } = group;
    const { channelId } = channel;
    const socket = await b.withGroups(ann, [{ groupId }]);
    await socket.call('channel.subscribe', { channel_ids: [channelId] });
    expect(await callAt(a, signed)).toBe('ok');
    const before = await socket.notificationsSoFar();
    expect(before.map(({ method }) => method)).not.toContain(hears);
    expect(await callAt(b, signed)).toBe(repeat);
    await arrives(socket, hears);
  });

  test('02 §10.3: a removal: the removed device reads no channel on its connection', async () => {
    const laptop = await b.withChannels(ann, [channel], { device: 'laptop' });
    const read = { channel_id: channel.channelId };
    const signed = [ann, 'device.state.publish', await ann.state({ devices: ['phone'] })] as const;
    expect(await callAt(a, signed)).toBe('ok');
    expect(await callAt(b, signed)).toBe('ok');
    await vi.waitFor(async () => {
      const answer = await laptop.call('channel.read', read);
      expect(answer).toHaveProperty('error.code', -32001);
    }, 20_000);
  });
});
