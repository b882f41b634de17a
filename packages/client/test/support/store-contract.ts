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
