import { expect, test } from 'vitest';
import { RequestPace } from '../../src/federation/dht/request-pace.ts';
import { ManualClock } from '../support/clock.ts';

test('requests that were given up do not delay later ones', async () => {
  const clock = new ManualClock();
  const pace = new RequestPace({ clock, rate: 10, burst: 1, keys: 10 });
  const never = new AbortController().signal;
  const giveUp = new AbortController();
  expect(await pace.turn('relay', never)).toBe(true);
  const waiting = Array.from({ length: 1_000 }, () => pace.turn('relay', giveUp.signal));
  giveUp.abort();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([false]));
  clock.advance(1);
  expect(await pace.turn('relay', never)).toBe(true);
});

test('a relay is sent no more than the pace, after those at once', async () => {
  const clock = new ManualClock();
  const pace = new RequestPace({ clock, rate: 10, burst: 5, keys: 10 });
  const never = new AbortController().signal;
  let turns = 0;
  const count = async () => {
    if (await pace.turn('relay', never)) turns += 1;
  };
  for (let request = 0; request < 100; request += 1) void count();
  await new Promise(setImmediate);
  expect(turns).toBe(5);
  clock.advance(2);
  await new Promise(setImmediate);
  expect(turns).toBe(25);
});
