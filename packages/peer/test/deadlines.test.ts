import { expect, test } from 'vitest';
import { Deadlines } from '../src/deadlines.ts';
import { ManualClock } from './support/clock.ts';

test('07 §B2: items expire at their time, also when earlier ones are added again', () => {
  const clock = new ManualClock();
  const expired: [string, number][] = [];
  const deadlines = new Deadlines<string>(clock, 10, (item) => {
    expired.push([item, clock.monotonic()]);
    if (item === 'again' && expired.length === 1) deadlines.add(item);
  });
  deadlines.add('again');
  clock.advance(5);
  deadlines.add('later');
  for (let time = 0; time < 20; time += 1) clock.advance(1);
  expect(expired).toEqual([
    ['again', 10],
    ['later', 15],
    ['again', 20],
  ]);
  expect(deadlines.size).toBe(0);
});
