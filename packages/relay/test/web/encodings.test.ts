import { expect, test } from 'vitest';
import { pickEncoding } from '../../src/web/index.ts';

const body = Buffer.from('text');
const bodies = new Map([
  ['br', body],
  ['gzip', body],
  ['identity', body],
] as const);
const file = { type: 'text/plain', digest: '', isImmutable: false, bodies };

test.each([
  ['gzip, deflate, br', 'br'],
  ['gzip ; q=0.5 , br ; q=0.0', 'gzip'],
  ['br;q=0', 'identity'],
  [' br\t;q=1', 'br'],
  [undefined, 'identity'],
] as const)('0045: Accept-Encoding %j gets %s', (accepted, encoding) => {
  expect(pickEncoding(file, accepted)).toBe(encoding);
});

test('02 §18: blanks in Accept-Encoding are read once, however many there are', () => {
  // Read once for each of them, these would take longer than a test may.
  expect(pickEncoding(file, `br${' '.repeat(100_000)}x, gzip`)).toBe('gzip');
});
