import { expect, test } from 'vitest';
import { BoundedMap } from '../src/bounded-map.ts';

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
