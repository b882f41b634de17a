/** What is read of the store grows with what there is to do, not with its square. */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { MemoryStore } from '../src/index.ts';
import { CountedStore } from './conversations/support.ts';
import { anotherDevice, club } from './groups/support.ts';
import { befriend, relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

/** Prepares something of a size, and returns the work to be measured. */
type Scene = (size: number, store: CountedStore) => Promise<() => Promise<unknown>>;

const times = <T>(size: number, work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: size }, (_, index) => work(index)));

const scenes: Record<string, Scene> = {
  'waiting for each of many messages': async (size, store) => {
    const ann = await world.person({ store });
    return async () => {
      const posted = await times(size, (at) => ann.messages.post(ann.id, { text: `${at}` }));
      await times(size, (at) => ann.messages.settled(posted[at]!));
    };
  },
  'waiting for each of many group messages': async (size, store) => {
    const ann = await world.person({ store });
    const id = await club(ann);
    return async () => {
      const posted = await times(size, (at) => ann.groups.post(id, { text: `${at}` }));
      await times(size, (at) => ann.groups.settled(posted[at]!));
    };
  },
  'waiting for each of many posts': async (size, store) => {
    const ann = await world.person({ store });
    const { id } = await ann.channels.create({ name: 'News' });
    return async () => {
      const posted = await times(size, (at) => ann.channels.post(id, { text: `${at}` }));
      await times(size, (at) => ann.channels.settled(posted[at]!));
    };
  },
  'holding messages until contacts are known': async (size, store) => {
    const accountKey = nodeRandom(32);
    const phone = await world.person({ accountKey });
    const bob = await world.person();
    await befriend(phone, bob);
    const laptop = await world.person({ accountKey, store });
    world.clock.advance(61);
    for (let at = 0; at < size; at += 1) await bob.messages.send(phone.id, { text: `${at}` });
    return () => laptop.sync();
  },
  'taking over many messages of one second': async (size, store) => {
    const ann = await world.person();
    for (let at = 0; at < size; at += 1) await ann.messages.send(ann.id, { text: `${at}` });
    const laptop = await anotherDevice(world, ann, { store });
    await ann.devices.handOver(laptop.deviceId);
    return () => laptop.sync();
  },
  'sharing many groups': async (size, store) => {
    const ann = await world.person({ store });
    for (let at = 0; at < size; at += 1) await ann.groups.create({ name: `${at}` });
    return () => ann.sync();
  },
};

test.each(Object.entries(scenes))('%s reads twice as much for twice as much', async (_, scene) => {
  const counts: number[] = [];
  for (const size of [20, 40]) {
    const store = new CountedStore(new MemoryStore());
    const work = await scene(size, store);
    const { entries: before } = store.reads;
    await work();
    counts.push(store.reads.entries - before);
  }
  const [once = 0, twice = 0] = counts;
  expect(once).toBeGreaterThan(20);
  expect(twice / once).toBeLessThan(2.2);
});

test('0045: what a messenger reads at its start does not grow with the messages that are stored', async () => {
  const counts: number[] = [];
  for (const size of [100, 400]) {
    const store = new CountedStore(new MemoryStore());
    const ann = await world.person({ store });
    for (let at = 0; at < size; at += 1) await ann.messages.send(ann.id, { text: `${at}` });
    const { entries: before } = store.reads;
    await ann.conversations.list({ limit: 50 });
    await ann.contacts.list();
    await ann.messages.list({ with: ann.id, newestFirst: true, limit: 51 });
    counts.push(store.reads.entries - before);
  }
  expect(counts[0]).toBeGreaterThan(50);
  expect(counts[1]).toBe(counts[0]);
});
