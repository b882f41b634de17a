/** Addresses of groups and channels in what strangers wrote. */
import { expect, test } from 'vitest';
import { findShared } from '../src/parts/find-shared.ts';

test.each([
  ['look: posthouse-group:abc_D-1, yes', 'group', 'posthouse-group:abc_D-1'],
  ['https://a.example/app/#channel=posthouse-channel%3Aabc', 'channel', 'posthouse-channel:abc'],
  [`-group:x ${'-'.repeat(70)}a.b-group:y`, 'group', 'a.b-group:y'],
  ['a-group: b-channel:c', 'channel', 'b-channel:c'],
] as const)('the address in %s is found', (text, kind, address) => {
  expect(findShared(text)).toEqual({ kind, address });
});

test.each(['', '-group:a', '1-group:a', 'a-groups:b', 'a-group:', `${'a'.repeat(70)}-group:b`])(
  '%s has no address',
  (text) => {
    expect(findShared(text)).toBeUndefined();
  },
);

test('what is after 16,000 characters is not searched, however many there are', () => {
  expect(findShared(`${' '.repeat(15_000)}a-group:b`)?.address).toBe('a-group:b');
  for (const part of [' ', 'a-', '-group:', 'a-group:!', 'a'.repeat(63)]) {
    expect(findShared(`!${part.repeat(190_000 / part.length)} b-channel:c`)?.kind).not.toBe(
      'channel',
    );
  }
});
