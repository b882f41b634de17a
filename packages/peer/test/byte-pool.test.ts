import { expect, test } from 'vitest';
import { BytePool, ByteTotal } from '../src/byte-pool.ts';
import { ManualClock } from './support/clock.ts';
import { forever, turns } from './support/hosts.ts';

function poolOf(clock = new ManualClock(), total = new ByteTotal(1_000)) {
  const seen = { stuck: 0 };
  const stuck = () => {
    seen.stuck += 1;
  };
  const pool = new BytePool({
    capacity: 100,
    total,
    grantable: 60,
    clock,
    patience: 30_000,
    stuck,
  });
  return { pool, seen, clock };
}

/** Notes the order in which requests are granted. */
function granted(pool: BytePool) {
  const order: string[] = [];
  const ask = (name: string, bytes: number, owner?: object) =>
    owner === undefined
      ? pool.acquire(bytes, forever).then(() => void order.push(name))
      : new Promise<void>((resolve) => {
          pool.request(bytes, owner, () => {
            order.push(name);
            resolve();
          });
        });
  return { order, ask };
}

test('07 §C2: pools with one total hold no more than it together', () => {
  const total = new ByteTotal(120);
  const [first, second] = [poolOf(undefined, total).pool, poolOf(undefined, total).pool];
  expect([first.tryAdd(100), second.tryAdd(21), second.tryAdd(20)]).toEqual([true, false, true]);
  first.release(100);
  expect([second.tryAdd(80), total.used]).toEqual([true, 100]);
});

test('07 §C2: requests are granted in their order as bytes are given back', async () => {
  const { pool } = poolOf();
  const { order, ask } = granted(pool);
  pool.add(50);
  const all = [ask('a', 20), ask('b', 5), ask('room', 0)];
  await turns(1);
  expect(order).toEqual([]);
  pool.release(15);
  await turns(1);
  expect(order).toEqual(['a', 'b']);
  pool.release(20);
  await Promise.all(all);
  expect(order).toEqual(['a', 'b', 'room']);
  expect(pool.used).toBe(40);
});

test('07 §C2: one owner at a time is granted what it asks for, until it leaves', async () => {
  const { pool } = poolOf();
  const { order, ask } = granted(pool);
  const [first, second] = [{}, {}];
  pool.add(90);
  const all = [ask('first', 30, first), ask('second', 30, second)];
  await turns(1);
  expect(order).toEqual(['first']);
  all.push(ask('first again', 30, first));
  await turns(1);
  expect(order).toEqual(['first', 'first again']);
  pool.unfavour(first);
  await Promise.all(all);
  expect(order).toEqual(['first', 'first again', 'second']);
});

test('07 §C2: what is held already has room up to the capacity', () => {
  const { pool } = poolOf();
  expect(pool.tryAcquire(61)).toBe(false);
  expect(pool.tryAcquire(60)).toBe(true);
  expect(pool.tryAdd(41)).toBe(false);
  expect(pool.tryAdd(40)).toBe(true);
});

test('07 §C2: a pool is stuck when requests wait and nothing is given back for 30 s', async () => {
  const { pool, seen, clock } = poolOf();
  pool.add(60);
  const waiting = pool.acquire(10, forever);
  clock.advance(29_999);
  pool.release(1);
  clock.advance(29_999);
  expect(seen.stuck).toBe(0);
  clock.advance(1);
  expect(seen.stuck).toBe(1);
  pool.release(20);
  await waiting;
  clock.advance(60_000);
  expect(seen.stuck).toBe(1);
});

test('07 §C2: an aborted request leaves the queue', async () => {
  const { pool } = poolOf();
  const { order, ask } = granted(pool);
  pool.add(60);
  const controller = new AbortController();
  const aborted = pool.acquire(50, controller.signal);
  const next = ask('next', 5);
  controller.abort(new Error('given up'));
  await expect(aborted).rejects.toThrow('given up');
  await expect(pool.acquire(50, controller.signal)).rejects.toThrow('given up');
  pool.release(5);
  await next;
  expect(order).toEqual(['next']);
});

test('07 §C2: when an aborted request was the first, the next is granted at once', async () => {
  const { pool } = poolOf();
  const { order, ask } = granted(pool);
  pool.add(30);
  const controller = new AbortController();
  const aborted = pool.acquire(50, controller.signal);
  const next = ask('next', 30);
  controller.abort(new Error('given up'));
  await expect(aborted).rejects.toThrow('given up');
  await next;
  expect(order).toEqual(['next']);
});

test('07 §C2: an owner that has left is neither granted its requests nor favoured', async () => {
  const { pool } = poolOf();
  const { order, ask } = granted(pool);
  const [first, gone] = [{}, {}];
  pool.add(60);
  const favoured = ask('first', 30, first);
  void ask('gone', 30, gone);
  pool.leave(gone);
  pool.leave(first);
  await Promise.all([favoured, ask('third', 30, {})]);
  expect(order).toEqual(['first', 'third']);
  expect(pool.used).toBe(120);
});
