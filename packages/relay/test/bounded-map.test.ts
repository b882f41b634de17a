import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BoundedMap } from '../src/bounded-map.ts';
import { seed } from './support/chance.ts';

test('one more than fit evicts the oldest that was not used', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  expect(map.get('a')).toBe(1);
  map.set('c', 3);
  expect(map.size).toBe(2);
  expect(Object.fromEntries(map.entries())).toEqual({ a: 1, c: 3 });
  // Replacing a value takes no room.
  map.set('a', 4);
  expect(map.get('c')).toBe(3);
  expect(map.get('b')).toBeUndefined();
});

test('what is evicted is told, and sizes are added up', () => {
  const evicted: string[] = [];
  const map = new BoundedMap<number, string>(5, {
    sizeOf: ({ length }) => length,
    evicted: (value) => evicted.push(value),
  });
  map.set(1, 'aa');
  map.set(2, 'bbb');
  map.set(2, 'b');
  expect(evicted).toEqual([]);
  map.set(3, 'cccc');
  expect(evicted).toEqual(['aa']);
  map.delete(3);
  map.set(4, 'dddd');
  expect(Object.fromEntries(map.entries())).toEqual({ 2: 'b', 4: 'dddd' });
});

test('what was just set stays, also if all others were used, and one of them goes', () => {
  const map = new BoundedMap<string, number>(3);
  for (const key of ['a', 'b', 'c']) map.set(key, 1);
  for (const key of ['a', 'b', 'c']) map.get(key);
  map.set('d', 4);
  expect(Object.fromEntries(map.entries())).toEqual({ b: 1, c: 1, d: 4 });
});

test('one more is evicted, too, if all were used, and a few are looked at for it', () => {
  const map = new BoundedMap<number, number>(1_000);
  for (let key = 0; key < 1_000; key += 1) map.set(key, key);
  for (let key = 0; key < 1_000; key += 1) map.get(key);
  map.set(1_000, 1_000);
  expect(map.size).toBe(1_000);
  expect(map.peek(64)).toBeUndefined();
  // Those that were passed over come before it alone, and count as not used.
  const keys = [...map.entries()].map(([key]) => key);
  expect(keys.slice(-3)).toEqual([62, 63, 1_000]);
});

test('any sequence of calls leaves the entries that a list would have, in its order', () => {
  const call = fc.oneof(
    { weight: 20, arbitrary: fc.constant('set' as const) },
    { weight: 10, arbitrary: fc.constant('get' as const) },
    { weight: 2, arbitrary: fc.constant('delete' as const) },
    { weight: 1, arbitrary: fc.constant('clear' as const) },
  );
  const change = fc.record({ call, key: fc.integer({ min: 0, max: 9 }) });
  fc.assert(
    fc.property(fc.array(change, { minLength: 50, maxLength: 200 }), (changes) => {
      const map = new BoundedMap<number, number>(4);
      let list: { readonly key: number; isUsed: boolean }[] = [];
      for (const { call, key } of changes) {
        const known = list.find((entry) => entry.key === key);
        if (call === 'set') map.set(key, key);
        else map[call](key);
        if (call === 'delete') list = list.filter((entry) => entry !== known);
        else if (call === 'clear') list = [];
        else if (known !== undefined) known.isUsed = true;
        else if (call === 'set') {
          while (list.length === 4) {
            const { key: oldest, isUsed } = list.shift() as (typeof list)[number];
            if (isUsed) list.push({ key: oldest, isUsed: false });
          }
          list.push({ key, isUsed: false });
        }
        expect([...map.entries()].map(([each]) => each)).toEqual(list.map((entry) => entry.key));
      }
    }),
    { seed },
  );
});
