import { parseJson } from '@posthouse/protocol/json';
import { expect, test } from 'vitest';

const nested = (depth: number) => `${'['.repeat(depth)}0${']'.repeat(depth)}`;

test('01 §2.1 J5: a text of depth 16 parses, one of depth 17 does not', () => {
  expect(() => parseJson(nested(16))).not.toThrow();
  expect(() => parseJson(nested(17))).toThrow('deeper than 16');
});

test('local records may be deeper, up to the depth asked for', () => {
  expect(() => parseJson(nested(24), 24)).not.toThrow();
  expect(() => parseJson(nested(25), 24)).toThrow('deeper than 24');
});
