import { expect, test } from 'vitest';
import { checkBanCap, checkCapacityCap } from '../../src/index.ts';
import { codeOf } from './fixture.ts';

test('05 §8.3: creation and increases fit the cap; keeping and lowering need not', () => {
  const check = (capacity: number, current?: number) => () =>
    checkCapacityCap(capacity, { cap: 100, ...(current !== undefined && { current }) });
  expect(check(100)).not.toThrow();
  expect(codeOf(check(101))).toBe('bad_request');
  expect(check(100, 50)).not.toThrow();
  expect(codeOf(check(101, 100))).toBe('bad_request');
  expect(codeOf(check(201, 200))).toBe('bad_request');
  expect(check(200, 200)).not.toThrow();
  expect(check(150, 200)).not.toThrow();
});

test('05 §13.19: additions fit the ban cap; a batch that adds none always does', () => {
  const check = (present: number, added: number) => () => checkBanCap({ present, added, cap: 10 });
  expect(check(8, 2)).not.toThrow();
  expect(codeOf(check(8, 3))).toBe('state_conflict');
  expect(codeOf(check(11, 1))).toBe('state_conflict');
  expect(check(11, 0)).not.toThrow();
});
