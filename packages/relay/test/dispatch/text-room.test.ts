import { expect, test } from 'vitest';
import { TextRoom } from '../../src/dispatch/text-room.ts';

/** 07 §C2: bytes of what is read of other relays' texts. */

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Takes room and notes by name when there is some. */
function taking(room: TextRoom, log: string[]) {
  return (name: string, bytes: number, signal?: AbortSignal) => {
    const taken = room.take(name.slice(0, 1), bytes, signal);
    taken.then(
      () => log.push(name),
      () => log.push(`${name} left`),
    );
    return async () => (await taken)[Symbol.dispose]();
  };
}

test('texts of a relay without room wait in their order, those of others do not', async () => {
  const held = { used: 0 };
  const room = new TextRoom({ ofEach: 100, total: 1_000, held });
  const log: string[] = [];
  const take = taking(room, log);
  const a1 = take('a1', 60);
  const a2 = take('a2', 60);
  const a3 = take('a3', 30);
  const b1 = take('b1', 100);
  await settle();
  expect(log).toEqual(['a1', 'b1']);
  expect(held.used).toBe(160);
  await a1();
  await settle();
  expect(log).toEqual(['a1', 'b1', 'a2', 'a3']);
  for (const give of [a2, a3, b1]) await give();
  expect(held.used).toBe(0);
  expect([room.fits(100), room.fits(101)]).toEqual([true, false]);
});

test('without room in all, relays have it in rotation; a large text is not overtaken', async () => {
  const room = new TextRoom({ ofEach: 50, total: 100 });
  const log: string[] = [];
  const take = taking(room, log);
  const first = [take('a1', 50), take('b1', 50)];
  const later = [take('c1', 50), take('d1', 10), take('d2', 10), take('e1', 10)];
  await first[0]?.();
  await settle();
  expect(log).toEqual(['a1', 'b1', 'c1']);
  await first[1]?.();
  await settle();
  expect(log).toEqual(['a1', 'b1', 'c1', 'd1', 'e1', 'd2']);
  for (const give of later) await give();
});

test('relays that have all of it leave each of the others a small text at a time', async () => {
  const held = { used: 0 };
  const room = new TextRoom({ ofEach: 50, total: 100, first: 10, held });
  const log: string[] = [];
  const take = taking(room, log);
  const all = [take('a1', 50), take('b1', 50)];
  const large = take('c1', 11);
  const small = take('d1', 10);
  const next = take('d2', 10);
  const other = take('e1', 10);
  await settle();
  expect(log).toEqual(['a1', 'b1', 'd1', 'e1']);
  await small();
  await settle();
  expect(log).toEqual(['a1', 'b1', 'd1', 'e1', 'd2']);
  await all[0]?.();
  await settle();
  expect(log.at(-1)).toBe('c1');
  for (const give of [all[1], large, next, other]) await give?.();
  expect(held.used).toBe(0);
});

test('one relay has half of all at the most', () => {
  const room = new TextRoom({ ofEach: 100, total: 100 });
  expect([room.fits(50), room.fits(51)]).toEqual([true, false]);
});

test('a text whose stream is reset leaves, and lets those after it have room', async () => {
  const room = new TextRoom({ ofEach: 50, total: 100 });
  const log: string[] = [];
  const take = taking(room, log);
  const first = take('a1', 20);
  const stream = new AbortController();
  take('a2', 40, stream.signal);
  const third = take('a3', 20);
  await settle();
  expect(log).toEqual(['a1']);
  stream.abort(new Error('reset'));
  await settle();
  expect(log.sort()).toEqual(['a1', 'a2 left', 'a3']);
  await first();
  await third();
  await take('a4', 50)();
  expect(log).toContain('a4');
});
