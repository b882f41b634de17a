/** Copies that another own device handed over, when their messages come from a relay (decision 0039). */
import { sha256Text } from '@posthouse/protocol';
import { canonicalBytes } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import type { AccountCore } from '../../src/core.ts';
import { MemoryStore } from '../../src/index.ts';
import { applyEntry } from '../../src/messages/apply-entry.ts';
import { addEarlierMessage, messageRow } from '../../src/messages/message-rows.ts';
import type { OpenedEntry } from '../../src/messages/open-page.ts';
import { NodeTransport } from '../../src/node.ts';
import { anotherDevice, exchange } from '../groups/support.ts';
import { RawSender } from '../support/raw-sender.ts';
import {
  befriend,
  network,
  relayWithClients,
  texts,
  withoutStatus,
} from '../support/relay-with-clients.ts';
import { SteeredTransport } from '../support/steered-transport.ts';

const world = relayWithClients();
const historyType = 'posthouse.own-device.history.v1';
const forged = { content_type: 'text/plain', text: 'what Bob never wrote' };

describe('03 §19: a copy whose envelope the relay gives later', () => {
  /** A copy of a message that Bob has sealed; the relay has not got the message yet. */
  async function handedOverBefore(change: object) {
    const store = new MemoryStore();
    const phone = await world.person({ store });
    const transport = new SteeredTransport(new NodeTransport({ ca: world.ca }));
    const bob = await world.person({ transport, prefer: 'http' });
    await befriend(phone, bob);
    const laptop = await anotherDevice(world, phone);
    await exchange(phone, laptop, bob);
    const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    transport.rules.set('message.send', async (send) => {
      held.resolve();
      await released.promise;
      return await send();
    });
    const sending = bob.messages.send(phone.id, { text: 'what Bob wrote' });
    await held.promise;
    const sent = JSON.parse(transport.bodies('message.send').at(-1) as string);
    const { envelope } = sent.params ?? sent;
    const { message_id, from, to, from_device_id, created_at } = envelope;
    const copy = {
      ...{ message_id, from, to, from_device_id, created_at, accepted_at: world.clock.now() },
      digest: sha256Text(network.primitives, canonicalBytes(envelope)),
      content: {
        $type: network.type('message.direct'),
        body: { content_type: 'text/plain', text: 'what Bob wrote' },
      },
    };
    await using liar = new RawSender(world, store);
    const messages = [{ ...copy, ...change }];
    await liar.send(phone.id, { $type: historyType, messages, sent: 1, total: 1, complete: true });
    await laptop.sync();
    const [before] = await laptop.messages.list();
    expect(before).toHaveProperty('handedOverBy');
    released.resolve();
    await sending;
    return { events: withoutStatus(await laptop.sync()), laptop, bob };
  }

  test('is verified from then on if it says the same', async () => {
    const { events, laptop } = await handedOverBefore({});
    expect(events).toEqual([]);
    const [message] = await laptop.messages.list();
    expect(message).toMatchObject({ body: { text: 'what Bob wrote' }, outcome: 'applied' });
    expect(message).not.toHaveProperty('handedOverBy');
    expect(await texts(laptop)).toHaveLength(1);
  });

  test.each([
    ['another text', { content: { $type: network.type('message.direct'), body: forged } }],
    ['another time', { created_at: 1 }],
    ['another device', { from_device_id: 'dev_AAAAAAAAAAAAAAAAAAAAAA' }],
    ['another envelope', { digest: `sha256:${'A'.repeat(43)}` }],
  ])('is replaced if it has %s, and the message is told', async (_, change) => {
    const { events, laptop, bob } = await handedOverBefore(change);
    const real = { from: bob.id, fromDeviceId: bob.deviceId, body: { text: 'what Bob wrote' } };
    expect(events).toMatchObject([{ kind: 'message', message: real }]);
    const all = await laptop.messages.list();
    expect(all).toMatchObject([real]);
    expect(all[0]).not.toHaveProperty('handedOverBy');
    expect(all[0]?.createdAt).not.toBe(1);
  });
});

test('03 §19: a copy stays if this device cannot open what the relay gives', async () => {
  const store = new MemoryStore();
  const core = { account: 'neo:me', store, clock: world.clock } as unknown as AccountCore;
  const message = { from: 'neo:bob', to: 'neo:me', message_id: 'msg_1', from_device_id: 'dev' };
  await store.write((tx) =>
    addEarlierMessage(core, tx, {
      ...{ ...message, digest: 'other', outcome: 'applied', created_at: 1, handedOverBy: 'phone' },
      content: { $type: network.type('message.direct'), body: forged },
    }),
  );
  const before = await store.read((tx) => messageRow(tx, message));
  const opened = {
    entry: { envelope: { ...message, created_at: 1 }, accepted_at: 2 },
    digest: 'x',
  };
  const options = { ownStateIsFresh: true };
  const result = await store.write((tx) =>
    applyEntry(core, tx, { ...opened, parsed: undefined } as unknown as OpenedEntry, options),
  );
  expect(result).toEqual({ complete: true, isNew: false, events: [] });
  expect(await store.read((tx) => messageRow(tx, message))).toEqual(before);
});
