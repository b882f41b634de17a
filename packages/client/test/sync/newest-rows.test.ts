/** Rows that are kept for as long as something may ask for them, and not for good. */
import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/index.ts';
import { Collection } from '../../src/store/collection.ts';
import { NewestRows } from '../../src/sync/newest-rows.ts';
import { enqueue } from '../../src/sync/outbox.ts';
import { WatchedStore } from '../support/watched-store.ts';

const rows = new NewestRows<number>('numbers', 10);
const stored = new Collection<number>('numbers');

async function keysOf(store: MemoryStore | WatchedStore): Promise<number[]> {
  const found = await store.read((tx) => stored.list(tx));
  return found.map(({ value }) => value).sort((a, b) => a - b);
}

test('the newest rows up to the capacity are kept, in the order in which they were added', async () => {
  const store = new MemoryStore();
  const add = (number: number) => store.write((tx) => rows.put(tx, `key ${number}`, number));
  for (let number = 1; number <= 10; number += 1) await add(number);
  expect(await keysOf(store)).toHaveLength(10);
  for (let number = 11; number <= 25; number += 1) await add(number);
  expect(await keysOf(store)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
  expect(await store.read((tx) => rows.get(tx, 'key 15'))).toBeUndefined();
  expect(await store.read((tx) => rows.get(tx, 'key 16'))).toBe(16);
});

test('rows of an earlier version are removed too, a few with each row that is added', async () => {
  const store = new WatchedStore();
  await store.write(async (tx) => {
    for (let number = 0; number < 120; number += 1) await stored.put(tx, `old ${number}`, number);
  });
  for (let number = 1_000; number < 1_130; number += 1) {
    const before = store.changes.length;
    await store.write((tx) => rows.put(tx, `new ${number}`, number));
    // The row, its number, the count; two removed rows with their numbers; the numbers of a batch.
    expect(store.changes.length - before).toBeLessThanOrEqual(3 + 4 + 50);
  }
  expect(await keysOf(store)).toEqual(Array.from({ length: 10 }, (_, n) => 1_120 + n));
});

test('an outbox has one counter, however many conversations it had', async () => {
  const store = new MemoryStore();
  const outbox = new Collection<number>('some-outbox');
  const counters = new Collection<number>('outbox-places');
  // As an earlier version left them: one for each conversation.
  await store.write(async (tx) => {
    for (let id = 0; id < 20; id += 1) await counters.put(tx, `some-outbox/${id}`, 100 + id);
  });
  const keys = new Set<string>();
  for (let value = 0; value < 100; value += 1) {
    const key = await store.write(async (tx) => {
      const id = String(value % 20);
      const place = await enqueue(tx, outbox, { id, value });
      await outbox.delete(tx, place);
      return place;
    });
    expect(keys.has(key)).toBe(false);
    // No place that the conversation had before.
    expect(Number(key.split('/')[1])).toBeGreaterThanOrEqual(100 + (value % 20));
    keys.add(key);
  }
  expect(await store.read((tx) => counters.list(tx))).toHaveLength(1);
});
