/** Tests of IndexedDbStore; they run in a page. */
import { noblePrimitives } from '@posthouse/protocol/crypto';
import { expect, test } from 'vitest';
import { encryptedStore } from '../../../src/store/encrypted.ts';
import { IndexedDbStore } from '../../../src/web/index.ts';
import { storeContract } from '../../support/store-contract.ts';

let names = 0;
const newName = () => {
  names += 1;
  return `store-${names}-${Math.random()}`;
};
const open = () => IndexedDbStore.open(newName());

// biome-ignore lint/suspicious/noExplicitAny: a page's globals, of which the project has no types.
const page = globalThis as any;
const unavailable = expect.objectContaining({ name: 'ClientError', code: 'store_unavailable' });

/** What the engine is asked for while `work` runs, by name of the function. */
async function counted(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const originals = ['IDBObjectStore', 'IDBCursor'].flatMap((kind) =>
    ['get', 'getAll', 'getAllKeys', 'openKeyCursor', 'advance'].flatMap((name) => {
      const prototype = page[kind].prototype;
      const original = prototype[name];
      if (original === undefined) return [];
      prototype[name] = function (...values: unknown[]) {
        counts[name] = (counts[name] ?? 0) + 1;
        return original.apply(this, values);
      };
      return [() => Object.assign(prototype, { [name]: original })];
    }),
  );
  try {
    await work();
  } finally {
    for (const restore of originals) restore();
  }
  return counts;
}

/** Registers the tests. */
export function storeTests(): void {
  storeContract('IndexedDB', open);
  storeContract('an encrypted store in IndexedDB', async () =>
    encryptedStore(await open(), { key: new Uint8Array(32).fill(7), primitives: noblePrimitives }),
  );
  test('what was stored is there after the store is opened again', async () => {
    const name = newName();
    const first = await IndexedDbStore.open(name);
    await first.write((tx) => tx.put('a', 'k', 'v'));
    await first[Symbol.asyncDispose]();
    await using again = await IndexedDbStore.open(name);
    expect(await again.read((tx) => tx.get('a', 'k'))).toBe('v');
  });

  test('rows of other collections are in no list, also if a name begins with another', async () => {
    await using store = await open();
    await store.write(async (tx) => {
      for (const collection of ['a', 'ab', 'b']) await tx.put(collection, 'k', collection);
    });
    expect(await store.read((tx) => tx.list('a'))).toEqual([['k', 'a']]);
    expect(await store.read((tx) => tx.list('ab', { reverse: true }))).toEqual([['k', 'ab']]);
  });

  test('50 of 5,000 rows are read with a request for keys and one for texts, backwards after two steps', async () => {
    await using store = await open();
    await store.write(async (tx) => {
      for (let row = 0; row < 5_000; row += 1) await tx.put('x', `${10_000 + row}`, 'text');
    });
    const list = (range: object) => () => store.read((tx) => tx.list('x', { limit: 50, ...range }));
    expect(await counted(list({ after: '12500' }))).toEqual({ getAll: 1, getAllKeys: 1 });
    expect(await counted(list({ before: '12500', reverse: true }))).toEqual({
      ...{ openKeyCursor: 1, advance: 1, getAll: 1, getAllKeys: 1 },
    });
    const newest = await list({ reverse: true })();
    expect(newest.map(([key]) => key)).toEqual(
      Array.from({ length: 50 }, (_, index) => `${14_999 - index}`),
    );
  });

  test('a write that awaits something else fails; the engine has stored what was put before', async () => {
    await using store = await open();
    const failing = store.write(async (tx) => {
      await tx.put('a', 'before', 'v');
      // Reads begin when the write has ended, which it does by itself.
      await store.read((other) => other.get('a', 'before'));
      await tx.put('a', 'after', 'v');
    });
    await expect(failing).rejects.toThrow('awaited something other than its own calls');
    expect(await store.read((tx) => tx.list('a'))).toEqual([['before', 'v']]);
  });

  test('if the engine aborts a commit without an error, the write is no success', async () => {
    await using store = await open();
    const prototype = page.IDBTransaction.prototype;
    const { commit } = prototype;
    prototype.commit = function () {
      this.abort();
    };
    try {
      await expect(store.write((tx) => tx.put('a', 'k', 'v'))).rejects.toEqual(unavailable);
    } finally {
      prototype.commit = commit;
    }
    expect(await store.read((tx) => tx.get('a', 'k'))).toBeUndefined();
  });

  test('if the browser closes the store, pending reads and writes fail with an error', async () => {
    await using store = await open();
    const prototype = page.IDBDatabase.prototype;
    const { transaction } = prototype;
    let database: EventTarget | undefined;
    prototype.transaction = function (...values: unknown[]) {
      database = this;
      return transaction.apply(this, values);
    };
    // What an engine leaves without an answer when it closes.
    const pending = [store.read, store.write].map((begin) =>
      begin.call(store, () => new Promise(() => undefined)).catch((error: unknown) => error),
    );
    prototype.transaction = transaction;
    database?.dispatchEvent(new Event('close'));
    expect(await Promise.all(pending)).toEqual([unavailable, unavailable]);
  });

  test('if another page deletes the store, it is closed with an error that names the cure', async () => {
    const name = newName();
    await using store = await IndexedDbStore.open(name);
    await store.write((tx) => tx.put('a', 'k', 'v'));
    await new Promise((resolve, reject) => {
      const request = page.indexedDB.deleteDatabase(name);
      request.onsuccess = resolve;
      request.onblocked = reject;
    });
    const reading = store.read((tx) => tx.get('a', 'k'));
    await expect(reading).rejects.toEqual(unavailable);
    await expect(reading).rejects.toThrow('reload this page');
    await expect(store.write((tx) => tx.put('a', 'k', 'v'))).rejects.toEqual(unavailable);
  });

  test('a database of a newer version or of another program is refused, and left as it is', async () => {
    for (const [version, tables] of [
      [99, ['entries']],
      [1, ['other']],
    ] as const) {
      const name = newName();
      const opened = () =>
        // biome-ignore lint/suspicious/noExplicitAny: as above.
        new Promise<any>((resolve) => {
          const request = page.indexedDB.open(name, version);
          request.onupgradeneeded = () => {
            for (const table of tables) request.result.createObjectStore(table);
          };
          request.onsuccess = () => resolve(request.result);
        });
      (await opened()).close();
      await expect(IndexedDbStore.open(name)).rejects.toEqual(
        expect.objectContaining({ code: 'store_mismatch' }),
      );
      const kept = await opened();
      expect([kept.version, [...kept.objectStoreNames]]).toEqual([version, tables]);
      kept.close();
    }
  });

  test('each handle is notified of commits of itself and of the others, not of failures and reads', async () => {
    const name = newName();
    await using one = await IndexedDbStore.open(name);
    await using other = await IndexedDbStore.open(name);
    await using stranger = await open();
    const heard: string[] = [];
    const waits = new Map<string, () => void>();
    const notified = (who: string) => () => {
      heard.push(who);
      waits.get(who)?.();
    };
    const hears = (who: string) => new Promise<void>((resolve) => waits.set(who, resolve));
    const watched = [one.watch(notified('one')), other.watch(notified('other'))];
    stranger.watch(notified('stranger'));
    await one.read((tx) => tx.get('a', 'k'));
    await one.write((tx) => tx.get('a', 'k'));
    await one.write(() => Promise.reject(new Error('no'))).catch(() => undefined);
    const isTold = hears('other');
    await one.write((tx) => tx.put('a', 'k', 'v'));
    await isTold;
    expect(heard.toSorted()).toEqual(['one', 'other']);
    watched[0]?.[Symbol.dispose]();
    const isToldAgain = hears('other');
    await other.write((tx) => tx.put('a', 'k', 'w'));
    await isToldAgain;
    expect(heard.toSorted()).toEqual(['one', 'other', 'other']);
  });

  test('a lock is held by one handle; waiting for it ends with the signal', async () => {
    const name = newName();
    await using one = await IndexedDbStore.open(name);
    await using other = await IndexedDbStore.open(name);
    await using stranger = await open();
    const { signal } = new AbortController();
    const held = await one.lock('engine', { signal });
    (await other.lock('else', { signal }))[Symbol.dispose]();
    (await stranger.lock('engine', { signal }))[Symbol.dispose]();
    const impatient = new AbortController();
    const waiting = other.lock('engine', { signal: impatient.signal });
    impatient.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    let isGranted = false;
    const next = other.lock('engine', { signal }).then((lock) => {
      isGranted = true;
      return lock;
    });
    // Requests are granted in their order: this one after the other, if that could be granted.
    (await other.lock('later', { signal }))[Symbol.dispose]();
    expect(isGranted).toBe(false);
    held[Symbol.dispose]();
    (await next)[Symbol.dispose]();
  });
}
