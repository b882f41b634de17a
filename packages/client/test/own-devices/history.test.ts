/** Messages that an older device hands to another one (decision 0039, 03 §19). */
import { accountSigner, newMessageId } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { type Account, type HandOverEvent, MemoryStore, type Store } from '../../src/index.ts';
import { anotherDevice, club, exchange, groupTexts } from '../groups/support.ts';
import { RawSender } from '../support/raw-sender.ts';
import {
  befriend,
  network,
  relayWithClients,
  texts,
  withoutStatus,
} from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { groups: true } });

const historyType = 'posthouse.own-device.history.v1';
/** Too long for more than four of them in one message. */
const long = (name: string) => `${name} ${'.'.repeat(30_000)}`;
const names = async (account: Account) =>
  (await texts(account)).map((text) => text.split(' ', 1)[0]);

async function storedAccount(store: Store): Promise<Account> {
  return await (await world.client({ store })).account();
}

test('a new device gets the messages of people and groups at their places, read, and once', async () => {
  const [phone, bob] = await world.friends();
  const group = await club(bob, [phone]);
  for (const text of ['1', '2']) {
    await bob.messages.send(phone.id, { text });
    await bob.groups.send(group, { text: `group ${text}` });
  }
  await phone.sync();
  await phone.messages.send(bob.id, { text: '3' });
  await phone.messages.send(phone.id, { text: 'note' });
  const store = new MemoryStore();
  const laptop = await anotherDevice(world, phone, { store });
  await exchange(phone, laptop, bob);
  world.clock.advance(61);
  await bob.messages.send(phone.id, { text: '4' });
  await exchange(phone, laptop);
  expect([await texts(laptop), await groupTexts(laptop, group)]).toEqual([['4'], []]);
  await laptop.sync();

  const seen: HandOverEvent[] = [];
  const progress = (event: HandOverEvent) => void seen.push(event);
  const result = await phone.devices.handOver(laptop.deviceId, { progress });
  const { deviceId } = laptop;
  const whole = { kind: 'hand-over', deviceId, sent: 7, skipped: 0, total: 7, isComplete: true };
  expect([result, seen]).toEqual([whole, [whole]]);
  expect(withoutStatus(await phone.sync())).toEqual([whole]);
  const from = { kind: 'history', deviceId: phone.deviceId, sent: 7, total: 7, isComplete: true };
  expect(await laptop.sync()).toEqual([{ ...from, added: 6 }]);
  expect(await texts(laptop)).toEqual(['1', '2', '3', 'note', '4']);
  expect(await groupTexts(laptop, group)).toEqual(['group 1', 'group 2']);
  const person = { kind: 'person', id: bob.id } as const;
  expect(await laptop.conversations.get(person)).toMatchObject({
    unread: 1,
    lastMessage: { body: { text: '4' } },
  });
  expect(await laptop.conversations.get({ kind: 'group', id: group })).toMatchObject({ unread: 0 });
  const [first, ...rest] = await laptop.messages.list({ with: bob.id });
  expect(first).toMatchObject({ from: bob.id, handedOverBy: phone.deviceId, outcome: 'applied' });
  expect(rest.at(-1)).not.toHaveProperty('handedOverBy');
  // A page of a list ends where the next one begins.
  const before = rest[0]?.order ?? 0;
  expect(await laptop.messages.list({ with: bob.id, before })).toEqual([first]);

  await phone.devices.handOver(laptop.deviceId);
  expect(await laptop.sync()).toEqual([{ ...from, added: 0 }]);
  await laptop.messages.send(bob.id, { text: '5' });
  expect((await texts(laptop)).slice(-2)).toEqual(['4', '5']);
  const rows = await store.read((tx) => tx.list('messages'));
  // What the objects brought is stored once, not in them too.
  const objects = rows.map(([, text]) => JSON.parse(text).content);
  expect(objects.filter(({ $type }) => $type === historyType)).toEqual([
    { $type: historyType },
    { $type: historyType },
  ]);
});

test('05 §17.1: a device that has just joined, and knows no group, gets the messages of groups too', async () => {
  const [phone, bob] = await world.friends();
  const group = await club(bob, [phone]);
  await bob.groups.send(group, { text: 'before the laptop' });
  await phone.sync();
  const client = await world.client();
  const request = await client.requestDevice(phone.publicKey);
  const approval = await phone.devices.approve(request);
  const laptop = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
  // The phone has not read what the laptop asked for.
  await phone.devices.handOver(laptop.deviceId);
  await laptop.sync();
  expect(await groupTexts(laptop, group)).toEqual(['before the laptop']);
});

test('only the chosen conversations, and only what is not older', async () => {
  const [phone, bob] = await world.friends();
  const carl = await world.person();
  await befriend(carl, phone);
  await phone.sync();
  await bob.messages.send(phone.id, { text: 'old' });
  world.clock.advance(3_600);
  const since = world.clock.now() - 60;
  await bob.messages.send(phone.id, { text: 'new' });
  await carl.messages.send(phone.id, { text: 'of another' });
  await phone.sync();
  const laptop = await anotherDevice(world, phone);
  const conversations = [{ kind: 'person', id: bob.id }] as const;
  await phone.devices.handOver(laptop.deviceId, { conversations, since });
  await laptop.sync();
  expect(await texts(laptop)).toEqual(['new']);
  const channel = [{ kind: 'channel', id: 'chan_x' }] as const;
  for (const wrong of [
    phone.devices.handOver(phone.deviceId),
    phone.devices.handOver(laptop.deviceId, { conversations: channel }),
  ]) {
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_input' });
  }
  await expect(phone.devices.handOver(bob.deviceId)).rejects.toMatchObject({
    code: 'no_recipient_device',
  });
});

test('in several messages that only that device can open; a restart goes on', async () => {
  const store = new MemoryStore();
  const [phone, tabletStore] = [await world.person({ store }), new MemoryStore()];
  const expected = Array.from({ length: 10 }, (_, index) => `${index}`);
  for (const name of expected) await phone.messages.send(phone.id, { text: long(name) });
  const laptop = await anotherDevice(world, phone);
  const tablet = await anotherDevice(world, phone, { store: tabletStore });
  await exchange(phone, laptop, tablet);
  const stop = new AbortController();
  const handing = phone.devices.handOver(laptop.deviceId, {
    signal: stop.signal,
    progress: () => stop.abort(new Error('stopped')),
  });
  await expect(handing).rejects.toThrow('stopped');
  const again = await storedAccount(store);
  const events = withoutStatus(await again.sync());
  expect(events.at(-1)).toMatchObject({ kind: 'hand-over', sent: 10, isComplete: true });
  expect(events.length).toBeGreaterThan(1);
  const received = await laptop.sync();
  expect(received.map((event) => event.kind === 'history' && event.sent)).toEqual([4, 8, 10]);
  expect(await names(laptop)).toEqual(expected);
  await tablet.sync();
  const rows = await tabletStore.read((tx) => tx.list('messages'));
  expect(JSON.stringify(rows)).not.toContain(historyType);
});

test('a removed device gets nothing more', async () => {
  const accountKey = nodeRandom(32);
  const phone = await world.person({ accountKey });
  for (const name of ['1', '2', '3', '4', '5', '6']) {
    await phone.messages.send(phone.id, { text: long(name) });
  }
  const laptop = await (await world.client()).setUp({ accountKey });
  await exchange(phone, laptop);
  const signer = accountSigner(network, accountKey);
  const act = { accountKey: signer, force: true };
  let removal: Promise<void> | undefined;
  const handing = phone.devices.handOver(laptop.deviceId, {
    progress: () => {
      removal ??= phone.devices.remove(laptop.deviceId, act);
    },
  });
  await expect(
    handing.then(() => removal).then(() => phone.devices.handOver(laptop.deviceId)),
  ).rejects.toMatchObject({ code: 'no_recipient_device' });
  expect(await phone.status()).toMatchObject({ outbox: 0, pendingTasks: 0 });
});

test('the hand-over to the only other device ends when that device is removed', async () => {
  const [accountKey, store] = [nodeRandom(32), new MemoryStore()];
  const phone = await world.person({ accountKey, store });
  for (const name of ['1', '2', '3', '4', '5', '6']) {
    await phone.messages.send(phone.id, { text: long(name) });
  }
  const laptop = await (await world.client()).setUp({ accountKey });
  await exchange(phone, laptop);
  const stop = new AbortController();
  const handing = phone.devices.handOver(laptop.deviceId, {
    signal: stop.signal,
    progress: () => stop.abort(new Error('stopped')),
  });
  await expect(handing).rejects.toThrow('stopped');
  const signer = accountSigner(network, accountKey);
  await phone.devices.remove(laptop.deviceId, { accountKey: signer, force: true });
  await phone.sync();
  expect(await store.read((tx) => tx.list('hand-overs'))).toEqual([]);
});

test('a lying own device adds no messages of others, and hides none that a relay has', async () => {
  const stores = [new MemoryStore(), new MemoryStore()] as const;
  const [phone, bob] = [
    await world.person({ store: stores[0] }),
    await world.person({ store: stores[1] }),
  ];
  await befriend(phone, bob);
  const laptop = await anotherDevice(world, phone);
  await exchange(phone, laptop, bob);
  await using liar = new RawSender(world, stores[0]);
  await using other = new RawSender(world, stores[1]);
  const message_id = newMessageId(nodeRandom);
  const content = {
    $type: network.type('message.direct'),
    body: { content_type: 'text/plain', text: 'forged' },
  };
  const copy = {
    ...{ message_id, from: bob.id, from_device_id: bob.deviceId, to: phone.id, content },
    ...{ created_at: 1, accepted_at: 2 ** 50, digest: `sha256:${'A'.repeat(43)}` },
  };
  const messages = [
    copy,
    { ...copy, message_id: newMessageId(nodeRandom), to: bob.id },
    {
      ...copy,
      message_id: newMessageId(nodeRandom),
      content: { $type: network.type('contact.grant') },
    },
    { ...copy, message_id: newMessageId(nodeRandom), content: { $type: historyType } },
    { ...copy, message_id: newMessageId(nodeRandom), content: { ...content, body: 'broken' } },
  ];
  const counts = { sent: 2 ** 52, total: 0, complete: false };
  await liar.send(phone.id, { $type: historyType, messages, ...counts });
  await liar.send(phone.id, { $type: historyType, messages: [{ message_id }], ...counts });
  expect(withoutStatus(await laptop.sync())).toMatchObject([{ kind: 'history', added: 1 }]);
  expect(await texts(laptop)).toEqual(['forged']);
  const real = { ...content, body: { content_type: 'text/plain', text: 'real' } };
  await other.send(phone.id, real, { messageId: message_id });
  expect(await laptop.sync()).toMatchObject([{ kind: 'message' }]);
  expect(await texts(laptop)).toEqual(['real']);
  const [row] = await laptop.messages.list();
  expect(row).not.toHaveProperty('handedOverBy');
});

test('05 §10: unverified messages of a group give way to the host’s', async () => {
  const stores = [new MemoryStore(), new MemoryStore()] as const;
  const [ann, phone] = [await world.person(), await world.person({ store: stores[0] })];
  const group = await club(ann, [phone]);
  const laptop = await anotherDevice(world, phone, { store: stores[1] });
  const [last] = await laptop.groups.listEntries(group, { limit: 1, newestFirst: true });
  const sequence = (last?.sequence ?? 0) + 1;
  await using liar = new RawSender(world, stores[0]);
  const content = {
    $type: network.type('group.message.content'),
    body: { content_type: 'text/plain', text: 'forged' },
  };
  const copy = {
    ...{ group_id: group, sequence, epoch: 0, message_id: newMessageId(nodeRandom), content },
    ...{ from: ann.id, from_device_id: ann.deviceId, created_at: 1, accepted_at: 1 },
  };
  const unknown = { ...copy, group_id: `grp_${'A'.repeat(22)}` };
  const counts = { sent: 1, total: 1, complete: true };
  await liar.send(phone.id, { $type: historyType, group_messages: [copy, unknown], ...counts });
  expect(withoutStatus(await laptop.sync())).toMatchObject([{ kind: 'history', added: 1 }]);
  await ann.groups.send(group, { text: 'real' });
  await laptop.sync();
  expect(await groupTexts(laptop, group)).toContain('real');
});
