import { expect, test } from 'vitest';
import { BoundedMap } from '../src/bounded-map.ts';

test('one more than fit evicts the one that was not used for longest', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  expect(map.get('a')).toBe(1);
  map.set('c', 3);
  expect(map.size).toBe(2);
  expect([...map.entries()]).toEqual([
    ['a', 1],
    ['c', 3],
  ]);
  // Replacing a value takes no room.
  map.set('a', 4);
  expect(map.get('c')).toBe(3);
  expect(map.get('b')).toBeUndefined();
});
