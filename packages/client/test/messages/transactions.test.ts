/** Transactions of the store: on a phone or in a browser, each one that writes is a wait for the disk. */
import { expect, test } from 'vitest';
import { type Account, MemoryStore, type Store } from '../../src/index.ts';
import { club } from '../groups/support.ts';
import { befriend, relayWithClients, texts } from '../support/relay-with-clients.ts';
import { impatient } from '../support/restartable-client.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

/** A store that counts its transactions, and the entries that they write. */
class CountedStore implements Store {
  readonly #store = new MemoryStore();
  reads = 0;
  writes = 0;
  entries = 0;

  read: Store['read'] = (work) => {
    this.reads += 1;
    return this.#store.read(work);
  };

  write: Store['write'] = (work) => {
    this.writes += 1;
    return this.#store.write((tx) => {
      const put: typeof tx.put = (...given) => {
        this.entries += 1;
        return tx.put(...given);
      };
      const get: typeof tx.get = (...given) => tx.get(...given);
      const list: typeof tx.list = (...given) => tx.list(...given);
      const remove: typeof tx.delete = (...given) => {
        this.entries += 1;
        return tx.delete(...given);
      };
      return work({ get, list, put, delete: remove });
    });
  };

  /** Runs work and counts what it does. */
  async count(work: () => Promise<unknown>) {
    const { reads, writes, entries } = this;
    await work();
    return {
      reads: this.reads - reads,
      writes: this.writes - writes,
      entries: this.entries - entries,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }
}

async function counted(): Promise<{ readonly store: CountedStore; readonly account: Account }> {
  const store = new CountedStore();
  return { store, account: await world.person({ store, ...impatient }) };
}

test('a synchronized page of 100 messages is written in one transaction, its mark in another', async () => {
  const ann = await world.person(impatient);
  const { store, account: bob } = await counted();
  await befriend(ann, bob);
  await bob.sync();
  const idle = await store.count(() => bob.sync());
  for (let count = 0; count < 100; count += 1) {
    await ann.messages.post(bob.id, { text: String(count) });
  }
  await ann.sync();
  const busy = await store.count(() => bob.sync());
  expect(await texts(bob)).toHaveLength(100);
  // The page with its events, and the mark that they were read.
  expect(busy.writes - idle.writes).toBe(2);
  expect(busy.reads).toBeLessThanOrEqual(idle.reads + 2);
  expect(busy.entries).toBeLessThanOrEqual(8 * 100);
});

test('a message is written in three transactions from post to its answer', async () => {
  const bob = await world.person(impatient);
  const { store, account: ann } = await counted();
  await befriend(ann, bob);
  await ann.sync();
  const groupId = await club(ann);
  const { id: channelId } = await ann.channels.create({ name: 'News' });
  const { messages, groups, channels } = ann;
  const kinds = {
    person: [() => messages.post(bob.id, { text: 'x' }), messages],
    group: [() => groups.post(groupId, { text: 'x' }), groups],
    channel: [() => channels.post(channelId, { text: 'x' }), channels],
  } as const;
  for (const [kind, [post, of]] of Object.entries(kinds)) {
    const { reads, writes, entries } = await store.count(async () => {
      const posted = await post();
      await of.settled(posted as never);
    });
    // It is stored, marked as sent, and gets its answer.
    expect({ kind, writes }).toEqual({ kind, writes: 3 });
    expect(reads).toBeLessThanOrEqual(20);
    expect(entries).toBeLessThanOrEqual(25);
  }
});

test('a list reads twice and writes nothing, also the first one after a start', async () => {
  const { store, account } = await counted();
  for (const text of ['one', 'two']) await account.messages.send(account.id, { text });
  await account.messages.list();
  const again = await (await world.client({ store })).account();
  const list = () => again.messages.list({ limit: 50, newestFirst: true });
  expect(await store.count(list)).toEqual({ reads: 2, writes: 0, entries: 0 });
  expect(await store.count(list)).toEqual({ reads: 1, writes: 0, entries: 0 });
});
