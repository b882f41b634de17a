import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { Counts } from '../../src/transport/counts.ts';

test('02 §18: the key with most is the one that a look at all of them finds', () => {
  const changes = fc.array(
    fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), up: fc.boolean() }),
  );
  fc.assert(
    fc.property(changes, (all) => {
      const counts = new Counts();
      const known = new Map<string, number>();
      for (const { key, up } of all) {
        const before = known.get(key) ?? 0;
        if (!up && before === 0) continue;
        counts.add(key, up ? 1 : -1);
        known.set(key, before + (up ? 1 : -1));
        expect(counts.get(key)).toBe(known.get(key));
        const most = Math.max(...known.values());
        expect(counts.get(counts.most() ?? '')).toBe(most);
        expect(counts.most() === undefined).toBe(most === 0);
      }
    }),
  );
});

test('0019: no search looks at the others', () => {
  const counts = new Counts();
  for (let key = 0; key < 1_000; key += 1) counts.add(String(key), 1);
  const looks = [
    vi.spyOn(Map.prototype, 'values'),
    vi.spyOn(Map.prototype, Symbol.iterator),
    vi.spyOn(Map.prototype, 'forEach'),
  ];
  counts.add('7', 1);
  const most = counts.most();
  const calls = looks.reduce((sum, look) => sum + look.mock.calls.length, 0);
  for (const look of looks) look.mockRestore();
  expect([most, calls]).toEqual(['7', 0]);
});
