/** Times that strangers wrote: any number that a message may have is shown. */
import { expect, test } from 'vitest';
import { briefTimeOf, dayOf, isoOf, isSameDay, timeOf } from '../src/text/index.ts';

test.each([0, -1, 1e-9, 253_402_300_800, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, Number.NaN])(
  'a message of the second %s has a time and a day',
  (second) => {
    for (const shown of [timeOf(second), dayOf(second), briefTimeOf(second), isoOf(second)]) {
      expect(shown).toMatch(/\d/);
    }
    expect(isSameDay(second, second)).toBe(true);
  },
);

test('a usual moment is what it was', () => {
  expect(isoOf(1_777_816_800)).toBe('2026-05-03T14:00:00.000Z');
});
