import { expect, test } from 'vitest';
import { RateLimiter } from '../../src/dispatch/rate-limiter.ts';
import { ManualClock } from '../support/clock.ts';

test('a burst passes, then one call for each share of a second', () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter({ keys: 10, rate: 2, burst: 3, clock });
  const take = () => limiter.take('ann');
  expect([take(), take(), take(), take()]).toEqual([0, 0, 0, 1]);
  clock.advance(1);
  expect([take(), take(), take()]).toEqual([0, 0, 1]);
  clock.advance(1_000);
  expect([take(), take(), take(), take()]).toEqual([0, 0, 0, 1]);
});

test('what is given back can be taken again, and no more', () => {
  const limiter = new RateLimiter({ keys: 10, rate: 1, burst: 2, clock: new ManualClock() });
  limiter.refund('ann');
  limiter.take('ann');
  limiter.refund('ann');
  expect([limiter.take('ann'), limiter.take('ann'), limiter.take('ann')]).toEqual([0, 0, 1]);
});

test('keys do not share', () => {
  const limiter = new RateLimiter({ keys: 10, rate: 1, burst: 1, clock: new ManualClock() });
  expect([limiter.take('ann'), limiter.take('bob'), limiter.take('ann')]).toEqual([0, 0, 1]);
});

test('the wait named is enough', () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter({ keys: 10, rate: 0.1, burst: 1, clock });
  limiter.take('ann');
  const wait = limiter.take('ann');
  expect(wait).toBe(10);
  clock.advance(wait);
  expect(limiter.take('ann')).toBe(0);
});

test('02 §18: a debt is at most one burst', () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter({ keys: 10, rate: 1, burst: 10, clock });
  expect(limiter.charge('ann', 1_000)).toBe(11);
  clock.advance(11);
  expect(limiter.take('ann')).toBe(0);
});

test('its memory has a bound', () => {
  const limiter = new RateLimiter({ rate: 1, burst: 1, clock: new ManualClock(), keys: 2 });
  for (const key of ['a', 'b', 'c']) limiter.take(key);
  // `a` was forgotten and starts afresh, which is the worst that can happen.
  expect([limiter.take('c'), limiter.take('a')]).toEqual([1, 0]);
});
