/** The event log of a store: what it holds, how long, and for which readers (decision 0034). */
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import {
  beginReader,
  eventMarks,
  forgetReader,
  markFinished,
  markTaken,
  readEventsAfter,
  recordEvents,
  recordPassing,
  takenEvents,
} from '../../src/events/event-log.ts';
import { type AccountEvent, MemoryStore, type Store } from '../../src/index.ts';
import { SqliteStore } from '../../src/node.ts';

const folder = temporaryFolder();
let files = 0;
const newPath = () => {
  files += 1;
  return `${folder.path}/${files}.sqlite`;
};
const kinds: Record<string, () => Store> = {
  memory: () => new MemoryStore(),
  'a SQLite file': () => SqliteStore.open(newPath()),
};

function numbered(count: number, from = 1): AccountEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    kind: 'group-joined',
    groupId: String(from + index),
  }));
}

async function record(store: Store, count: number): Promise<void> {
  const { head } = await store.read(eventMarks);
  await recordPassing({ store }, numbered(count, head + 1));
}

/** Numbers of the stored events, as a new reader from the beginning gets them. */
async function numbers(store: Store): Promise<number[]> {
  const page = await store.read((tx) => readEventsAfter(tx, 0, 20_000));
  for (const { number, event } of page.events) {
    expect(event).toEqual({ kind: 'group-joined', groupId: String(number) });
  }
  return page.events.map(({ number }) => number);
}

describe.each(Object.entries(kinds))('%s', (_, open) => {
  test('a page has the events after a number, in order, and says whether there are more', async () => {
    await using store = open();
    await record(store, 5);
    const page = await store.read((tx) => readEventsAfter(tx, 1, 2));
    expect(page.events.map(({ number }) => number)).toEqual([2, 3]);
    expect(page).toMatchObject({ through: 3, hasMore: true, isBehind: false });
    expect(await store.read((tx) => readEventsAfter(tx, 3, 2))).toMatchObject({
      through: 5,
      hasMore: false,
    });
    expect(await store.read((tx) => readEventsAfter(tx, 5, 2))).toEqual({
      events: [],
      through: 5,
      hasMore: false,
      isBehind: false,
    });
  });

  test('events are recorded in the transaction that changes the state, or not at all', async () => {
    await using store = open();
    const failing = store.write(async (tx) => {
      await tx.put('a', 'k', 'v');
      await recordEvents(tx, numbered(3));
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await numbers(store)).toEqual([]);
    await record(store, 1);
    expect(await numbers(store)).toEqual([1]);
  });

  test('of the events that a reader has finished with, the newest 1,000 stay', async () => {
    await using store = open();
    await record(store, 1_000);
    await store.write((tx) => markFinished(tx, 1_000));
    expect((await numbers(store))[0]).toBe(1);
    await record(store, 1);
    expect((await numbers(store))[0]).toBe(2);
    // Those that no reader has finished with stay, however many they are.
    await record(store, 2_000);
    expect((await numbers(store))[0]).toBe(1_001);
    expect(await store.read((tx) => readEventsAfter(tx, 1_000, 1))).toMatchObject({
      isBehind: false,
    });
    expect(await store.read((tx) => readEventsAfter(tx, 999, 1))).toMatchObject({
      isBehind: true,
      events: [{ number: 1_001 }],
    });
  });

  test('of the events that no reader has finished with, the newest 10,000 stay', async () => {
    await using store = open();
    await record(store, 9_999);
    await record(store, 1);
    expect((await numbers(store)).length).toBe(10_000);
    await record(store, 1);
    const stored = await numbers(store);
    expect([stored.length, stored[0]]).toEqual([10_000, 2]);
  });

  test('one transaction removes a bounded number of events', async () => {
    await using store = open();
    await record(store, 3_000);
    await store.write((tx) => markFinished(tx, 3_000));
    expect((await numbers(store)).length).toBe(2_800);
    for (let round = 0; round < 9; round += 1) await record(store, 1);
    expect((await numbers(store)).length).toBe(1_000);
  });

  test('of events that were taken before earlier ones, the newest 1,000 are remembered', async () => {
    await using store = open();
    await record(store, 1_500);
    const some = Array.from({ length: 1_200 }, (_, index) => index + 101);
    await store.write((tx) => markTaken(tx, some));
    const taken = await store.read(takenEvents);
    expect([taken.size, Math.min(...taken), Math.max(...taken)]).toEqual([1_000, 301, 1_300]);
    await store.write((tx) => markFinished(tx, 1_299));
    await store.write((tx) => markTaken(tx, [1_400]));
    expect([...(await store.read(takenEvents))]).toEqual([1_300, 1_400]);
    await store.write((tx) => markFinished(tx, 1_500));
    await store.write((tx) => markTaken(tx, []));
    expect((await store.read(takenEvents)).size).toBe(0);
  });

  test('the mark of what readers have finished with neither falls nor passes the last event', async () => {
    await using store = open();
    await record(store, 3);
    const at = { head: 3, removed: 0, hosted: 3 };
    await store.write((tx) => markFinished(tx, 2));
    await store.write((tx) => markFinished(tx, 1));
    expect(await store.read(eventMarks)).toMatchObject({ ...at, finished: 2 });
    await store.write((tx) => markFinished(tx, 9));
    expect(await store.read(eventMarks)).toMatchObject({ ...at, finished: 3 });
  });

  test('decision 0034: what a named reader has not finished with stays, at most the newest 10,000', async () => {
    await using store = open();
    await record(store, 2);
    await store.write((tx) => markFinished(tx, 2));
    const begin = () => store.write((tx) => beginReader(tx, 'bot'));
    expect(await begin()).toEqual({ cursor: 2, head: 2 });
    await record(store, 3_000);
    await store.write((tx) => markFinished(tx, 3_002));
    await record(store, 1);
    expect((await numbers(store))[0]).toBe(3);
    await store.write((tx) => markFinished(tx, 0, [['bot', 10]]));
    await store.write((tx) => markFinished(tx, 0, [['bot', 9]]));
    expect(await begin()).toEqual({ cursor: 10, head: 3_003 });
    expect((await numbers(store))[0]).toBe(11);
    await record(store, 10_000);
    for (let round = 0; round < 20; round += 1) await record(store, 1);
    expect((await numbers(store)).length).toBe(10_000);
    expect(await begin()).toEqual({ cursor: 10, head: 13_023 });
  });

  test('decision 0034: a named reader that is forgotten holds no event, and stays forgotten', async () => {
    await using store = open();
    await record(store, 1_100);
    await store.write((tx) => beginReader(tx, 'bot'));
    await store.write((tx) => markFinished(tx, 1_100));
    expect((await numbers(store))[0]).toBe(1);
    await store.write((tx) => forgetReader(tx, 'bot'));
    expect((await numbers(store))[0]).toBe(101);
    await store.write((tx) => markFinished(tx, 0, [['bot', 5]]));
    expect((await store.read(eventMarks)).readers.size).toBe(0);
  });

  test('decision 0034: a store has 16 named readers, and their names are short', async () => {
    await using store = open();
    const begin = (name: string) => store.write((tx) => beginReader(tx, name));
    const refused = { code: 'invalid_input' };
    await expect(begin('x'.repeat(65))).rejects.toMatchObject(refused);
    for (let index = 0; index < 14; index += 1) await begin(`bot-${index}`);
    for (const name of ['__proto__', 'x'.repeat(64)]) await begin(name);
    await expect(begin('another')).rejects.toMatchObject(refused);
    expect(await begin('__proto__')).toEqual({ cursor: 0, head: 0 });
    await store.write((tx) => forgetReader(tx, '__proto__'));
    await begin('another');
  });
});
