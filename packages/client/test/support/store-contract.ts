/** What every store must do: the same suite for each, on Node and in pages. */
import { describe, expect, test } from 'vitest';
import type { Store } from '../../src/index.ts';
import { Collection } from '../../src/store/collection.ts';

/** Registers the suite; `open` returns a new, empty store each time. */
export function storeContract(title: string, open: () => Store | Promise<Store>): void {
  describe(title, () => {
    test('keeps what was put, until it is deleted', async () => {
      await using store = await open();
      await store.write((tx) => tx.put('a', 'k', 'one'));
      await store.write((tx) => tx.put('a', 'k', 'two'));
      expect(await store.read((tx) => tx.get('a', 'k'))).toBe('two');
      expect(await store.read((tx) => tx.get('b', 'k'))).toBeUndefined();
      await store.write((tx) => tx.delete('a', 'k'));
      expect(await store.read((tx) => tx.get('a', 'k'))).toBeUndefined();
    });

    test('lists in order of keys, by prefix, between keys, limited, backwards', async () => {
      await using store = await open();
      await store.write(async (tx) => {
        for (const key of ['b/2', 'a', 'b/1', 'c', 'b/10', 'b']) await tx.put('x', key, key);
        await tx.put('y', 'b/0', 'elsewhere');
      });
      const keys = async (
        range?: Parameters<Parameters<Parameters<Store['read']>[0]>[0]['list']>[1],
      ) => (await store.read((tx) => tx.list('x', range))).map(([key]) => key);
      expect(await keys()).toEqual(['a', 'b', 'b/1', 'b/10', 'b/2', 'c']);
      expect(await keys({ prefix: 'b/' })).toEqual(['b/1', 'b/10', 'b/2']);
      expect(await keys({ prefix: 'b/', after: 'b/1' })).toEqual(['b/10', 'b/2']);
      expect(await keys({ after: 'b', limit: 2 })).toEqual(['b/1', 'b/10']);
      expect(await keys({ limit: 2, reverse: true })).toEqual(['c', 'b/2']);
      expect(await keys({ limit: 0 })).toEqual([]);
      expect(await keys({ prefix: 'b/', before: 'b/2' })).toEqual(['b/1', 'b/10']);
      expect(await keys({ before: 'b/2', limit: 1, reverse: true })).toEqual(['b/10']);
      expect(await keys({ after: 'b', before: 'b/1' })).toEqual([]);
      // Keys outside of the prefix restrict nothing, or leave nothing.
      expect(await keys({ prefix: 'b/', after: 'a', before: 'd' })).toEqual(['b/1', 'b/10', 'b/2']);
      expect(await keys({ prefix: 'b/', after: 'b/', limit: 1 })).toEqual(['b/1']);
      expect(await keys({ prefix: 'b/', limit: 9, reverse: true })).toEqual(['b/2', 'b/10', 'b/1']);
      expect(await keys({ prefix: 'b/', after: 'b/1', reverse: true })).toEqual(['b/2', 'b/10']);
      for (const range of [{ after: 'c' }, { before: 'a' }, { after: 'b/2', before: 'b/10' }]) {
        expect(await keys({ prefix: 'b/', ...range })).toEqual([]);
        expect(await keys({ prefix: 'b/', ...range, limit: 1, reverse: true })).toEqual([]);
      }
    });

    test('a write that throws leaves nothing', async () => {
      await using store = await open();
      await store.write((tx) => tx.put('a', 'k', 'before'));
      const failing = store.write(async (tx) => {
        await tx.put('a', 'k', 'after');
        await tx.put('a', 'new', 'value');
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      expect(await store.read((tx) => tx.list('a'))).toEqual([['k', 'before']]);
    });

    test('writes run one after another, each on what the other left', async () => {
      await using store = await open();
      const counter = new Collection<number>('counter');
      const add = () =>
        store.write(async (tx) => {
          const value = (await counter.get(tx, 'n')) ?? 0;
          await Promise.resolve();
          await counter.put(tx, 'n', value + 1);
        });
      await Promise.all(Array.from({ length: 50 }, add));
      expect(await store.read((tx) => counter.get(tx, 'n'))).toBe(50);
    });

    test('values are JSON; __proto__ is an ordinary name', async () => {
      await using store = await open();
      const values = new Collection<unknown>('values');
      const value = JSON.parse('{"__proto__":{"a":1},"b":[null,true,"é😀"]}');
      await store.write((tx) => values.put(tx, 'k', value));
      const read = await store.read((tx) => values.get(tx, 'k'));
      expect(JSON.stringify(read)).toBe('{"__proto__":{"a":1},"b":[null,true,"é😀"]}');
    });
  });
}

/** The suite for stores that several programs may use at the same time. */
export function sharingContract(title: string, open: () => Store | Promise<Store>): void {
  describe(`${title}, shared`, () => {
    test('a lock has one holder, and passes to the next one when it is disposed', async () => {
      await using store = await open();
      const { signal } = new AbortController();
      const first = await store.lock?.('a', { signal });
      const order: string[] = [];
      const second = store.lock?.('a', { signal }).then((lock) => {
        order.push('second');
        return lock;
      });
      // Another name is another lock.
      (await store.lock?.('b', { signal }))?.[Symbol.dispose]();
      order.push('first');
      first?.[Symbol.dispose]();
      (await second)?.[Symbol.dispose]();
      expect(order).toEqual(['first', 'second']);
    });

    test('waiting for a lock ends with the signal, and holds up no other', async () => {
      await using store = await open();
      const { signal } = new AbortController();
      const first = await store.lock?.('a', { signal });
      const stop = new AbortController();
      const aborted = store.lock?.('a', { signal: stop.signal });
      const third = store.lock?.('a', { signal });
      stop.abort(new Error('enough'));
      await expect(aborted).rejects.toThrow('enough');
      await expect(store.lock?.('a', { signal: stop.signal })).rejects.toThrow('enough');
      first?.[Symbol.dispose]();
      (await third)?.[Symbol.dispose]();
    });

    test('a watcher is called after a commit, not after a failure, and not when it has ended', async () => {
      await using store = await open();
      let calls = 0;
      const watch = store.watch?.(() => {
        calls += 1;
      });
      const failing = store.write(() => Promise.reject(new Error('no')));
      await expect(failing).rejects.toThrow('no');
      expect(calls).toBe(0);
      await store.write((tx) => tx.put('a', 'k', 'v'));
      expect(calls).toBe(1);
      watch?.[Symbol.dispose]();
      await store.write((tx) => tx.put('a', 'k', 'w'));
      expect(calls).toBe(1);
    });
  });
}
