/** What other own devices, hosts and relays cannot do through what is shared (decision 0039, 03 §19). */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import {
  type Account,
  MemoryStore,
  type Store,
  type StoreWriter,
  type Transport,
} from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { enqueueTask } from '../../src/sync/tasks.ts';
import { anotherDevice, exchange } from '../groups/support.ts';
import { RawSender } from '../support/raw-sender.ts';
import { befriend, relayWithClients } from '../support/relay-with-clients.ts';
import { answeredBy, SteeredTransport } from '../support/steered-transport.ts';

const world = relayWithClients({ host: { channels: true } });

const stateType = 'posthouse.own-device.state.v1';

const isFollowed = async (account: Account, id: string) =>
  (await account.channels.list()).some((one) => one.id === id && one.followState === 'followed');

const steeredTransport = () => new SteeredTransport(new NodeTransport({ ca: world.ca }));

const retry = { attempts: 1, base: 1, cap: 1 };

const place = (position: number) => String(position).padStart(16, '0');

/** Stores conversations that were read, as a person with many groups has them. */
async function putReadGroups(store: Store, ids: readonly string[]): Promise<void> {
  await store.write(async (tx) => {
    for (const [index, id] of ids.entries()) {
      const row = { at: index, last: place(index), unread: 0, readThrough: index + 1, since: 0 };
      await tx.put('conversations', `group/${id}`, JSON.stringify(row));
      await tx.put('conversations-by-time', `${place(index)}/group/${id}`, 'true');
    }
  });
}

test('more marks than one message holds arrive, each part once, also after the relay was full', async () => {
  const transport = steeredTransport();
  const [store, laptopStore] = [new MemoryStore(), new MemoryStore()];
  const phone = await world.person({ store, transport, retry });
  const laptop = await anotherDevice(world, phone, { store: laptopStore });
  await exchange(phone, laptop);
  const ids = Array.from(
    { length: 501 },
    () => `grp_${Buffer.from(nodeRandom(16)).toString('base64url')}`,
  );
  await putReadGroups(store, ids);
  await putReadGroups(laptopStore, ids);
  await store.write((tx) => enqueueTask(tx, { kind: 'send-account-state' }));
  transport.rules.set('message.send', async () => ({
    status: 429,
    contentType: 'application/json',
    body: new TextEncoder().encode(JSON.stringify({ code: 'rate_limited', message: 'full' })),
  }));
  await phone.sync();
  transport.rules.clear();
  await exchange(phone, laptop);
  await exchange(phone, laptop);
  expect(await phone.status()).toMatchObject({ outbox: 0, pendingTasks: 0 });
  const sent = (await store.read((tx) => tx.list('messages')))
    .map(([, text]) => JSON.parse(text).content)
    .filter((content) => content?.$type === stateType && content.read !== undefined);
  expect(sent.map(({ read }) => read.length).sort()).toEqual([1, 500]);
  const rows = await laptopStore.read((tx) => tx.list('conversations'));
  const marked = rows.filter(([, text]) => JSON.parse(text).readElsewhere !== undefined);
  expect(marked).toHaveLength(501);
});

test('02 §10.5: a session that ended at its host does not give a shared channel up', async () => {
  const transport = steeredTransport();
  const phone = await world.person();
  const laptop = await anotherDevice(world, phone, { transport, prefer: 'http' });
  const ann = await world.person();
  const { id, link } = await ann.channels.create({ name: 'News' });
  await exchange(phone, laptop);
  world.clock.advance(61);
  await phone.channels.follow(link);
  await phone.sync();
  transport.rules.set('channel.resolve', answeredBy(401, 'unauthorized'));
  await laptop.sync();
  transport.rules.clear();
  expect(await isFollowed(laptop, id)).toBe(false);
  world.clock.advance(61);
  await laptop.sync();
  expect(await isFollowed(laptop, id)).toBe(true);
});

test('a relay that claims a time in the future silences no contact on other own devices', async () => {
  const store = new MemoryStore();
  const phone = await world.person({ store });
  const bob = await world.person();
  await befriend(phone, bob);
  const laptop = await anotherDevice(world, phone);
  await exchange(phone, laptop, bob);
  await bob.messages.send(phone.id, { text: 'one' });
  await exchange(phone, laptop);
  const [message] = await phone.messages.list({ with: bob.id });
  const lie = { kind: 'person', id: bob.id, from: bob.id, message_id: message?.messageId ?? '' };
  await using liar = new RawSender(world, store);
  await liar.send(phone.id, { $type: stateType, read: [{ ...lie, accepted_at: 2 ** 52 }] });
  const key = { kind: 'person', id: bob.id } as const;
  const unread = async () => (await laptop.conversations.get(key))?.unread;
  await laptop.sync();
  expect(await unread()).toBe(0);
  world.clock.advance(61);
  await bob.messages.send(phone.id, { text: 'two' });
  await laptop.sync();
  expect(await unread()).toBe(1);

  await store.write(async (tx: StoreWriter) => {
    for (const [rowKey, text] of await tx.list('messages')) {
      const row = JSON.parse(text);
      if (row.from === bob.id) {
        await tx.put('messages', rowKey, JSON.stringify({ ...row, accepted_at: 2 ** 52 }));
      }
    }
  });
  await phone.conversations.markRead(key);
  await phone.sync();
  const sent = (await store.read((tx) => tx.list('messages')))
    .map(([, text]) => JSON.parse(text))
    .filter(
      ({ from_device_id, content }) =>
        from_device_id === phone.deviceId &&
        content?.$type === stateType &&
        content.read?.length > 0,
    )
    .flatMap(({ content }) =>
      content.read.map((mark: { accepted_at: number }) => mark.accepted_at),
    );
  expect(sent.filter((time) => time < 2 ** 52)).toHaveLength(1);
});

test('a decision of a device with a slow clock counts on devices with a right one', async () => {
  const phone = await world.person();
  const ann = await world.person();
  const { id, link } = await ann.channels.create({ name: 'News' });
  const clock = {
    milliseconds: () => world.clock.milliseconds() - 120_000,
    sleep: (time: number, signal?: AbortSignal) => world.clock.sleep(time, signal),
  };
  const tablet = await anotherDevice(world, phone, { clock });
  await phone.channels.follow(link);
  world.clock.advance(61);
  await exchange(phone, tablet);
  expect(await isFollowed(tablet, id)).toBe(true);
  await tablet.channels.unfollow(id);
  world.clock.advance(61);
  await exchange(tablet, phone);
  expect([await isFollowed(phone, id), await isFollowed(tablet, id)]).toEqual([false, false]);
});

test('the latest of all decisions counts, in whatever order they arrive', async () => {
  const store = new MemoryStore();
  const transport = steeredTransport();
  const phone = await world.person({ store });
  const laptop = await anotherDevice(world, phone, { transport });
  const ann = await world.person();
  const { id: channel_id, link } = await ann.channels.create({ name: 'News' });
  await using own = new RawSender(world, store);
  const decide = async (followed: boolean, changed_at: number) => {
    const channels = [{ channel_id, relay_id: world.relay.relayId, followed, changed_at }];
    await own.send(phone.id, { $type: stateType, channels });
    await laptop.sync();
  };
  await laptop.channels.follow(link);
  const now = world.clock.milliseconds();
  world.clock.advance(61);
  await decide(true, now + 20_000);
  await decide(false, now + 10_000);
  expect(await isFollowed(laptop, channel_id)).toBe(true);
  await decide(false, now + 30_000);
  expect(await isFollowed(laptop, channel_id)).toBe(false);

  // A person decides while the host answers.
  let hasDecided = false;
  transport.rules.set('channel.resolve', async (send) => {
    if (!hasDecided) await laptop.channels.unfollow(channel_id);
    hasDecided = true;
    return await send();
  });
  await decide(true, now + 40_000);
  expect([hasDecided, await isFollowed(laptop, channel_id)]).toEqual([true, false]);
});

test('hosts that give no answer are asked after everything else, a few in one sync', async () => {
  const phone = await world.person();
  const ann = await world.person();
  for (let count = 0; count < 6; count += 1) {
    const { link } = await ann.channels.create({ name: `News ${count}` });
    await phone.channels.follow(link);
  }
  const made: string[] = [];
  using inner = new NodeTransport({ ca: world.ca });
  let stalls = false;
  const transport: Transport = {
    request: async (request) => {
      const { pathname } = new URL(request.url);
      made.push(pathname);
      if (!stalls || !pathname.endsWith('channel/resolve')) return await inner.request(request);
      const { promise, reject } = Promise.withResolvers<never>();
      request.signal.addEventListener('abort', () => reject(request.signal.reason));
      const asked = made.filter((path) => path.endsWith('channel/resolve')).length;
      if (asked === 4 || asked === 6) setImmediate(() => world.clock.advance(16));
      return await promise;
    },
  };
  const client = await world.client({ transport });
  const approval = await phone.devices.approve(await client.requestDevice(phone.publicKey));
  const laptop = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
  await phone.sync();
  stalls = true;
  made.length = 0;
  await laptop.sync();
  const first = made.findIndex((path) => path.endsWith('channel/resolve'));
  expect(made.slice(first)).toEqual(made.slice(first, first + 4));
  expect(new Set(made.slice(first)).size).toBe(1);
  stalls = false;
  world.clock.advance(3_600);
  await exchange(laptop);
  expect((await laptop.channels.list()).map(({ followState }) => followState)).toEqual(
    Array.from({ length: 6 }, () => 'followed'),
  );
});

test('a mark over many unread messages is applied in several transactions', async () => {
  const [phone, bob] = await world.friends();
  const inner = new MemoryStore();
  let most = 0;
  const store: Store = {
    read: (work) => inner.read(work),
    write: (work) =>
      inner.write(async (tx) => {
        let deleted = 0;
        const counting: StoreWriter = {
          get: (...args) => tx.get(...args),
          list: (...args) => tx.list(...args),
          put: (...args) => tx.put(...args),
          delete: async (collection, key) => {
            deleted += Number(collection === 'unread-messages');
            await tx.delete(collection, key);
          },
        };
        const result = await work(counting);
        most = Math.max(most, deleted);
        return result;
      }),
    [Symbol.asyncDispose]: async () => {},
  };
  const laptop = await anotherDevice(world, phone, { store });
  await exchange(phone, laptop, bob);
  await bob.messages.send(phone.id, { text: 'last' });
  await exchange(phone, laptop);
  const key = { kind: 'person', id: bob.id } as const;
  await inner.write(async (tx) => {
    for (let position = 1; position <= 1_200; position += 1) {
      await tx.put('unread-messages', `person/${bob.id}/${place(position)}`, 'true');
    }
    const row = JSON.parse((await tx.get('conversations', `person/${bob.id}`)) ?? '{}');
    await tx.put('conversations', `person/${bob.id}`, JSON.stringify({ ...row, unread: 1_201 }));
  });
  await phone.conversations.markRead(key);
  world.clock.advance(61);
  await phone.sync();
  const events = await laptop.sync();
  expect(events.filter(({ kind }) => kind === 'conversation-read')).toHaveLength(2);
  expect((await laptop.conversations.get(key))?.unread).toBe(0);
  expect(await inner.read((tx) => tx.list('unread-messages'))).toEqual([]);
  expect(most).toBe(500);
});
