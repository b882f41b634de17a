import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Rotation } from '../src/rotation.ts';
import { seed } from './support/chance.ts';

/** Takes so many items, or all. */
function taken(rotation: Rotation<string>, count = Infinity): string[] {
  const items: string[] = [];
  while (items.length < count && !rotation.isEmpty) items.push(rotation.take() as string);
  return items;
}

/** Adds so many items to an owner, named after it. */
function fill(rotation: Rotation<string>, owner: string, count: number): void {
  for (let added = 0; added < count; added += 1) rotation.add(owner, owner);
}

describe('decision 0019: turns of owners', () => {
  test('owners with many items take turns of so many items', () => {
    const rotation = new Rotation<string>(3);
    for (const owner of ['a', 'b']) fill(rotation, owner, 8);
    expect(taken(rotation).join('')).toBe('abaaabbbaaabbbab');
  });

  test('a turn that is ended goes to the next owner', () => {
    const rotation = new Rotation<string>(3);
    for (const owner of ['a', 'b']) fill(rotation, owner, 4);
    expect(taken(rotation, 3).join('')).toBe('aba');
    rotation.countTurn();
    expect(taken(rotation).join('')).toBe('bbbaa');
  });

  test('an owner that has nothing when its turn goes on is a newcomer for the rest of it', () => {
    const rotation = new Rotation<string>(3);
    fill(rotation, 'a', 2);
    fill(rotation, 'b', 4);
    expect(taken(rotation, 3).join('')).toBe('aba');
    expect(taken(rotation, 1)).toEqual(['b']);
    fill(rotation, 'a', 1);
    expect(taken(rotation).join('')).toBe('abb');
  });

  test('a newcomer is next, however many items the others have', () => {
    const rotation = new Rotation<string>(4);
    for (let owner = 0; owner < 100; owner += 1) fill(rotation, `hot ${owner}`, 1_000);
    taken(rotation, 150);
    fill(rotation, 'new', 2);
    expect(taken(rotation, 1)).toEqual(['new']);
    expect(taken(rotation, 10)).not.toContain('new');
  });

  test('an owner whose next item follows at once is a newcomer once in a round', () => {
    const rotation = new Rotation<string>(2);
    for (const owner of ['a', 'b']) fill(rotation, owner, 100);
    taken(rotation, 4);
    const order: (string | undefined)[] = [];
    for (let count = 0; count < 20; count += 1) {
      if (rotation.sizeOf('c') === 0) fill(rotation, 'c', 1);
      order.push(rotation.take());
    }
    expect(order.join('')).toBe('cbbaaccbbaaccbbaaccb');
  });

  test('what was counted as a turn and is given back makes its owner a newcomer again', () => {
    /** Who is served while an owner has an item now and then that counts as a turn. */
    const served = (refund: number) => {
      const rotation = new Rotation<string>(4);
      for (const owner of ['a', 'b', 'c', 'd']) fill(rotation, owner, 100);
      taken(rotation, 8);
      const order: string[] = [];
      for (let count = 0; count < 5; count += 1) {
        if (rotation.sizeOf('now') === 0) fill(rotation, 'now', 1);
        const next = rotation.take() as string;
        order.push(next);
        if (next !== 'now') continue;
        rotation.countTurn();
        rotation.refund('now', refund);
        order.push(...taken(rotation, 1));
      }
      return order.map((owner) => owner[0]).join('');
    };
    expect(served(0)).toMatch(/^n[abcd]{5}$/);
    expect(served(1)).toMatch(/^(?:n[abcd]){2}[abcd]{3}$/);
    expect(served(2)).toMatch(/^(?:n[abcd]){2}[abcd]{3}$/);
    expect(served(3)).toMatch(/^(?:n[abcd]){4}[abcd]$/);
    // No more than the items that it had.
    expect(served(100)).toMatch(/^(?:n[abcd]){4}[abcd]$/);
  });

  test('an owner with an item now and then is served first, for as many items as a turn has', () => {
    const rotation = new Rotation<string>(3);
    for (const owner of ['a', 'b', 'c']) fill(rotation, owner, 100);
    taken(rotation, 6);
    const order: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      fill(rotation, 'now', 1);
      order.push(...taken(rotation, 2));
      if (rotation.sizeOf('now') > 0) break;
    }
    expect(order.map((owner) => owner[0]).join('')).toMatch(/^(?:n[abc]){3}[abc][abc]$/);
  });

  test('an owner with an item now and then, after a burst, is served first again', () => {
    const rotation = new Rotation<string>(8);
    const hot = Array.from({ length: 50 }, (_, number) => `hot ${number}`);
    const refill = () => {
      for (const owner of hot) fill(rotation, owner, 8 - rotation.sizeOf(owner));
    };
    refill();
    taken(rotation, 500);
    refill();
    // More than its share of a round, so the rest waits for its turn.
    fill(rotation, 'now', 20);
    while (rotation.sizeOf('now') > 0) {
      rotation.take();
      refill();
    }
    const waits = Array.from({ length: 50 }, () => {
      for (let count = 0; count < 100; count += 1) {
        rotation.take();
        refill();
      }
      fill(rotation, 'now', 1);
      let wait = 0;
      while (rotation.take() !== 'now') wait += 1;
      refill();
      return wait;
    });
    // It may wait for one more turn of its own.
    expect(waits.filter((wait) => wait > 8).length).toBeLessThanOrEqual(1);
  });

  test('an item that counts as a turn is the share of a newcomer, and ends no turn of another', () => {
    const rotation = new Rotation<string>(3);
    for (const owner of ['a', 'b']) fill(rotation, owner, 9);
    taken(rotation, 3);
    fill(rotation, 'page', 1);
    expect(rotation.take()).toBe('page');
    rotation.countTurn();
    rotation.forgetLast();
    fill(rotation, 'page', 1);
    expect(taken(rotation, 9).join('')).toBe('aabbbpageaaa');
  });

  test('what an owner adds later than right after its item may be served first', () => {
    const rotation = new Rotation<string>(4);
    for (const owner of ['a', 'b']) fill(rotation, owner, 9);
    taken(rotation, 2);
    fill(rotation, 'c', 1);
    expect(rotation.take()).toBe('c');
    rotation.forgetLast();
    fill(rotation, 'c', 1);
    expect(rotation.take()).toBe('c');
  });

  test('what an owner adds right after its item follows in its turn', () => {
    const rotation = new Rotation<string>(2);
    fill(rotation, 'a', 1);
    fill(rotation, 'b', 9);
    const order: string[] = [];
    for (let count = 0; count < 8; count += 1) {
      order.push(rotation.take() as string);
      if (order.at(-1) === 'a') fill(rotation, 'a', 1);
    }
    expect(order.join('')).toBe('abaabbaa');
  });

  test('nine newcomers leave the ninth place to another owner', () => {
    const rotation = new Rotation<string>();
    fill(rotation, 'a', 3);
    taken(rotation, 1);
    for (const owner of '123456789') fill(rotation, owner, 1);
    expect(taken(rotation).join('')).toBe('1234567a89a');
  });

  test('when nothing waits, each owner is a newcomer again', () => {
    const rotation = new Rotation<string>(3);
    for (const owner of ['a', 'b']) fill(rotation, owner, 2);
    taken(rotation);
    fill(rotation, 'b', 2);
    fill(rotation, 'a', 2);
    expect(taken(rotation).join('')).toBe('baba');
  });
});

type Step =
  | { readonly add: number }
  | { readonly take: true; readonly refund?: number | undefined };
const steps = fc.array(
  fc.oneof(
    fc.record({ add: fc.integer({ min: 0, max: 30 }) }),
    fc.record({
      take: fc.constant(true as const),
      refund: fc.option(fc.nat(9), { nil: undefined }),
    }),
  ),
  { minLength: 50, maxLength: 400 },
);

test('each owner has its items in their order, none is lost, and none waits for three turns of another', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 5 }), (made: Step[], itemsOfTurn) => {
      const rotation = new Rotation<{ owner: number; item: number }>(itemsOfTurn);
      const waiting = new Map<number, number[]>();
      /** For each owner that was taken from and has waited since, what the others had meanwhile. */
      const since = new Map<number, Map<number, number>>();
      let item = 0;
      const take = (refund?: number) => {
        const next = rotation.take();
        if (next !== undefined && refund !== undefined) {
          rotation.countTurn();
          rotation.refund(`${next.owner}`, refund);
        }
        const size = [...waiting.values()].reduce((sum, { length }) => sum + length, 0);
        if (size === 0) {
          expect(next).toBeUndefined();
          return;
        }
        const { owner } = next as { owner: number };
        expect(waiting.get(owner)?.shift()).toBe(next?.item);
        for (const [other, had] of since) {
          if (other === owner) continue;
          const count = (had.get(owner) ?? 0) + 1;
          had.set(owner, count);
          expect(count).toBeLessThanOrEqual(2 * itemsOfTurn);
        }
        if (waiting.get(owner)?.length) since.set(owner, new Map());
        else since.delete(owner);
        if (rotation.isEmpty) since.clear();
      };
      for (const step of made) {
        if ('take' in step) take(step.refund);
        else {
          item += 1;
          rotation.add(`${step.add}`, { owner: step.add, item });
          waiting.set(step.add, [...(waiting.get(step.add) ?? []), item]);
        }
      }
      while (!rotation.isEmpty) take();
      expect([...waiting.values()].flat()).toEqual([]);
    }),
    { seed, numRuns: 200 },
  );
});

test('a newcomer waits for the newcomers before it, two turns of others, and one for each eight', () => {
  fc.assert(
    fc.property(
      fc.record({
        itemsOfTurn: fc.integer({ min: 1, max: 8 }),
        hot: fc.integer({ min: 1, max: 50 }),
        before: fc.integer({ min: 0, max: 60 }),
        taken: fc.integer({ min: 0, max: 300 }),
      }),
      ({ itemsOfTurn, hot, before, taken: first }) => {
        const rotation = new Rotation<string>(itemsOfTurn);
        for (let owner = 0; owner < hot; owner += 1) fill(rotation, `hot ${owner}`, 1_000);
        // Each of them is no newcomer any more.
        taken(rotation, hot * (1 + itemsOfTurn) + first);
        for (let owner = 0; owner < before; owner += 1) fill(rotation, `earlier ${owner}`, 10);
        fill(rotation, 'newcomer', 1);
        const place = taken(rotation, 1_000).indexOf('newcomer');
        const turns = 2 + Math.floor(before / 8);
        expect(place).toBeGreaterThanOrEqual(before);
        expect(place).toBeLessThanOrEqual(before + turns * itemsOfTurn);
      },
    ),
    { seed },
  );
});
