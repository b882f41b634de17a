import { afterEach, expect, test, vi } from 'vitest';
import { diagnoseEnvelope, parseJson } from '../../src/json/index.ts';

afterEach(() => vi.restoreAllMocks());

/** Counts how many characters are looked at one by one. */
function countLooks(work: () => void): number {
  const looks = vi.spyOn(String.prototype, 'charCodeAt');
  work();
  return looks.mock.calls.length;
}

const space = ' \n\r\t'.repeat(25_000);

test.each([
  ['before a value', `${space}1`, 1],
  ['in an array', `[${space}1${space},${space}2${space}]`, [1, 2]],
  ['in an object', `{${space}"a"${space}:${space}1${space}}`, { a: 1 }],
  ['after a value', `1${space}`, 1],
])('01 §2.1: 100,000 spaces %s are passed over in one piece', (_, text, value) => {
  expect(countLooks(() => expect(parseJson(text)).toEqual(value))).toBeLessThan(100);
});

test.each([
  ['of nothing but spaces', space],
  ['with spaces before each mark', `[${space}1${space},${space}1.0${space}]`],
  ['that ends after spaces', `{"a"${space}`],
])('02 §18: of a text %s, few characters are looked at one by one', (_, text) => {
  expect(countLooks(() => void diagnoseEnvelope(text))).toBeLessThan(100);
});
