/** What own devices share of followed channels and read marks (decision 0039, 03 §19). */
import { accountSigner } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { type Account, MemoryStore, type Store } from '../../src/index.ts';
import { postTexts } from '../channels/support.ts';
import { anotherDevice, exchange } from '../groups/support.ts';
import { RawSender } from '../support/raw-sender.ts';
import {
  befriend,
  network,
  relayWithClients,
  withoutStatus,
} from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { channels: true } });

const stateType = 'posthouse.own-device.state.v1';

/** Lists the objects of this client that a device has stored, without what they brought. */
async function objectsIn(store: Store): Promise<{ readonly from_device_id: string }[]> {
  const rows = await store.read((tx) => tx.list('messages'));
  const found = rows.map(([, text]) => JSON.parse(text));
  return found.filter(({ content }) => content?.$type === stateType);
}

const followed = async (account: Account) =>
  (await account.channels.list())
    .filter(({ followState }) => followState === 'followed')
    .map(({ id }) => id)
    .sort();

const unread = async (account: Account, id: string) =>
  (await account.conversations.get({ kind: 'person', id }))?.unread;

/** Lets the minute between two messages with changes pass. */
const nextMinute = () => world.clock.advance(61);

test('a device paired later, or joined by key, learns channels and read marks, once', async () => {
  const accountKey = nodeRandom(32);
  const phone = await world.person({ accountKey, keepKey: true });
  const ann = await world.person();
  const { id: news, link } = await ann.channels.create({ name: 'News' });
  await ann.channels.send(news, { text: 'hello' });
  const own = await phone.channels.create({ name: 'Mine' });
  await phone.channels.follow(link);
  const left = await ann.channels.create({ name: 'Left' });
  await phone.channels.follow(left.link);
  await phone.channels.unfollow(left.id);
  await phone.sync();

  const store = new MemoryStore();
  const laptop = await anotherDevice(world, phone, { store });
  expect(await followed(laptop)).toEqual([news, own.id].sort());
  expect(await laptop.channels.get(own.id)).toMatchObject({ role: 'owner' });
  // A sync adopts channels last; the next one reads them.
  await laptop.sync();
  expect(await postTexts(laptop, news)).toEqual(['hello']);
  const tablet = await (await world.client()).setUp({ accountKey });
  await exchange(phone, laptop, tablet);
  await exchange(phone, laptop, tablet);
  expect(await followed(tablet)).toEqual([news, own.id].sort());
  const received = (await objectsIn(store)).map(({ from_device_id }) => from_device_id);
  // The tablet, being new, has nothing to tell; the phone does not repeat itself.
  expect(received.filter((id) => id !== laptop.deviceId)).toEqual([phone.deviceId]);
  for (const device of [phone, laptop, tablet]) {
    expect(await device.messages.list()).toEqual([]);
    expect(await device.conversations.get({ kind: 'person', id: phone.id })).toBeUndefined();
  }
});

test('later changes are sent together, at most once a minute, and the later one wins', async () => {
  const ann = await world.person();
  const [one, two] = [
    await ann.channels.create({ name: 'One' }),
    await ann.channels.create({ name: 'Two' }),
  ];
  const [phoneStore, store] = [new MemoryStore(), new MemoryStore()];
  const phone = await world.person({ store: phoneStore });
  const laptop = await anotherDevice(world, phone, { store });
  await phone.channels.follow(one.link);
  await phone.channels.follow(two.link);
  await exchange(phone, laptop);
  expect(await followed(laptop)).toEqual([one.id, two.id].sort());
  expect(await objectsIn(store)).toHaveLength(1);

  await laptop.channels.unfollow(two.id);
  await phone.channels.unfollow(one.id);
  await exchange(phone, laptop);
  // The laptop had sent nothing yet, the phone less than a minute ago.
  expect([await followed(phone), await followed(laptop)]).toEqual([[], [one.id]]);
  nextMinute();
  await exchange(phone, laptop);
  expect(await followed(laptop)).toEqual([]);
  // Two from the phone, one from the laptop; what was adopted is not sent again.
  for (let minute = 0; minute < 2; minute += 1) {
    for (const each of [store, phoneStore]) expect(await objectsIn(each)).toHaveLength(3);
    nextMinute();
    await exchange(phone, laptop);
  }
});

test('an account with one device sends nothing and keeps no changes', async () => {
  const store = new MemoryStore();
  const ann = await world.person({ store });
  const { id } = await ann.channels.create({ name: 'Alone' });
  await ann.sync();
  expect(await objectsIn(store)).toEqual([]);
  expect(await store.read((tx) => tx.list('own-device-changes'))).toEqual([]);
  expect(await followed(ann)).toEqual([id]);
});

test('read marks move forward on every device, never back', async () => {
  const [phone, bob] = await world.friends();
  const laptop = await anotherDevice(world, phone);
  await exchange(phone, laptop, bob);
  for (const text of ['one', 'two', 'three']) await bob.messages.send(phone.id, { text });
  await exchange(phone, laptop);
  expect([await unread(phone, bob.id), await unread(laptop, bob.id)]).toEqual([3, 3]);
  const key = { kind: 'person', id: bob.id } as const;
  const [, second] = await phone.messages.list({ with: bob.id });
  await phone.conversations.markRead(key, { through: second?.order ?? 0 });
  await phone.sync();
  expect(withoutStatus(await laptop.sync())).toEqual([
    { kind: 'conversation-read', conversation: key },
  ]);
  expect(await unread(laptop, bob.id)).toBe(1);
  await laptop.conversations.markRead(key);
  nextMinute();
  const [first] = await phone.messages.list({ with: bob.id });
  await phone.conversations.markRead(key, { through: first?.order ?? 0 });
  await exchange(laptop, phone);
  expect([await unread(phone, bob.id), await unread(laptop, bob.id)]).toEqual([0, 0]);
  await bob.messages.send(phone.id, { text: 'four' });
  await exchange(phone, laptop);
  expect([await unread(phone, bob.id), await unread(laptop, bob.id)]).toEqual([1, 1]);
});

test('what is known as read elsewhere is not unread when it arrives late', async () => {
  const store = new MemoryStore();
  const [phone, bob] = [await world.person({ store }), await world.person()];
  const laptop = await anotherDevice(world, phone);
  const news = await bob.channels.create({ name: 'News' });
  await phone.channels.follow(news.link);
  await exchange(phone, laptop);
  await bob.channels.send(news.id, { text: 'seen on the phone' });
  await phone.sync();
  await phone.conversations.markRead({ kind: 'channel', id: news.id });
  nextMinute();
  await phone.sync();
  await laptop.sync();
  expect(await postTexts(laptop, news.id)).toEqual(['seen on the phone']);
  expect((await laptop.conversations.get({ kind: 'channel', id: news.id }))?.unread).toBe(0);
  // A mark that is older than the last one changes nothing.
  await using sender = new RawSender(world, store);
  for (const through of [100, 0]) {
    const read = [{ kind: 'channel', id: news.id, through }];
    await sender.send(phone.id, { $type: stateType, read });
  }
  await bob.channels.send(news.id, { text: 'seen, too' });
  await laptop.sync();
  await laptop.sync();
  expect(await postTexts(laptop, news.id)).toHaveLength(2);
  expect((await laptop.conversations.get({ kind: 'channel', id: news.id }))?.unread).toBe(0);
});

test('no object of this kind is shown: newer versions, broken ones, and those of contacts', async () => {
  const stores = [new MemoryStore(), new MemoryStore()];
  const [ann, bob] = [
    await world.person({ store: stores[0] as Store }),
    await world.person({ store: stores[1] as Store }),
  ];
  await befriend(ann, bob);
  await using own = new RawSender(world, stores[0] as Store);
  await using other = new RawSender(world, stores[1] as Store);
  const newer = { $type: 'posthouse.own-device.state.v2', anything: true };
  const broken = { $type: stateType, channels: [{ channel_id: 'nothing' }] };
  const { id: channel_id } = await bob.channels.create({ name: 'Spam' });
  const foreign = {
    $type: stateType,
    channels: [{ channel_id, relay_id: world.relay.relayId, followed: true, changed_at: 1 }],
  };
  await own.send(ann.id, newer);
  await own.send(ann.id, broken);
  await other.send(ann.id, foreign);
  await other.send(ann.id, { $type: 'example.other', shown: true });
  const events = await ann.sync();
  expect(events).toMatchObject([{ kind: 'message', message: { outcome: 'stored' } }]);
  expect(await ann.messages.list()).toHaveLength(1);
  expect(await unread(ann, ann.id)).toBeUndefined();
  expect(await unread(ann, bob.id)).toBe(1);
  expect(await ann.channels.list()).toEqual([]);
});

test('a removed device is sent nothing and believed nothing', async () => {
  const accountKey = nodeRandom(32);
  const phoneStore = new MemoryStore();
  const phone = await world.person({ accountKey, store: phoneStore });
  const laptop = await (await world.client()).setUp({ accountKey });
  await exchange(phone, laptop);
  const ann = await world.person();
  const { id: channel_id, link } = await ann.channels.create({ name: 'Wanted' });
  await using thief = new RawSender(world, phoneStore);
  const channels = [{ channel_id, relay_id: world.relay.relayId, followed: true, changed_at: 1 }];
  await thief.send(phone.id, { $type: stateType, channels });
  const signer = accountSigner(network, accountKey);
  await laptop.devices.remove(phone.deviceId, { accountKey: signer, force: true });
  expect(withoutStatus(await laptop.sync())).toEqual([]);
  expect(await followed(laptop)).toEqual([]);
  await laptop.channels.follow(link);
  await laptop.sync();
  expect(await laptop.status()).toMatchObject({ outbox: 0, pendingTasks: 0 });
});

/** A store that remembers how many rows a collection had at most, after any write. */
function counting(store: Store, collection: string): { readonly store: Store; most: number } {
  const counted = {
    most: 0,
    store: {
      read: (work) => store.read(work),
      write: (work) =>
        store.write(async (tx) => {
          const result = await work(tx);
          counted.most = Math.max(counted.most, (await tx.list(collection)).length);
          return result;
        }),
      [Symbol.asyncDispose]: async () => {},
    } satisfies Store,
  };
  return counted;
}

test('a lying own device cannot fill the store or end the reading', async () => {
  const store = new MemoryStore();
  const counted = counting(store, 'shared-channels');
  const phone = await world.person();
  const laptopStore = new MemoryStore();
  const laptop = await anotherDevice(world, phone, { store: laptopStore });
  await using liar = new RawSender(world, laptopStore);
  const anyId = () => `chan_${Buffer.from(nodeRandom(16)).toString('base64url')}`;
  // Of a relay that the registry does not have: nothing has to be asked.
  const relay_id = `0x${'0'.repeat(40)}`;
  const invented = () => ({ channel_id: anyId(), relay_id, followed: true, changed_at: 2 ** 52 });
  const tablet = await anotherDevice(world, phone, { store: counted.store });
  await laptop.sync();
  for (let count = 0; count < 3; count += 1) {
    const channels = Array.from({ length: 500 }, invented);
    // The host does not have it.
    if (count === 0) channels[0] = { ...invented(), relay_id: world.relay.relayId };
    const read = [{ kind: 'group', id: anyId().replace('chan', 'grp'), through: 2 ** 52 }];
    await liar.send(phone.id, { $type: stateType, channels, read });
  }
  await tablet.sync({ signal: AbortSignal.timeout(60_000) });
  expect(counted.most).toBe(1_000);
  expect(await store.read((tx) => tx.list('shared-channels'))).toEqual([]);
  expect(await tablet.channels.list()).toEqual([]);
  expect(await store.read((tx) => tx.list('conversations'))).toEqual([]);
});
