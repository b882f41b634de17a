import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canonicalJson,
  canonicalWith,
  type JsonObject,
  type JsonValue,
  parseJson,
  parseJsonInSteps,
  prepareCanonicalJson,
} from '../../src/json/index.ts';
import { protocolJson } from './arbitraries.ts';

function prepared(text: string): { readonly value: JsonValue; readonly steps: number } {
  const parsing = parseJsonInSteps(text, { length: 1_000 });
  let step = parsing.next();
  while (step.done !== true) step = parsing.next();
  let steps = 1;
  for (const _ of prepareCanonicalJson(step.value)) steps += 1;
  return { value: step.value, steps };
}

test('01 §3: a text made in steps is the one made at once, with members left out and added', () => {
  const filler = 'x'.repeat(4_096);
  fc.assert(
    fc.property(fc.dictionary(fc.string(), protocolJson), protocolJson, (members, value) => {
      const text = JSON.stringify({ ...members, filler, inner: { list: [filler, value], value } });
      const small = parseJson(text) as JsonObject;
      const { value: large } = prepared(text);
      expect(canonicalJson(large)).toBe(canonicalJson(small));
      for (const name of ['inner', 'filler']) {
        expect(canonicalJson((large as JsonObject)[name] as JsonValue)).toBe(
          canonicalJson(small[name] as JsonValue),
        );
      }
      const changes = { omit: ['filler', 'a'], add: { $context: 'c', a: 1, filler: [2] } };
      expect(canonicalWith(large as JsonObject, changes)).toBe(canonicalWith(small, changes));
    }),
  );
});

test('01 §3: an added name that a prepared object has already is refused', () => {
  const { value } = prepared(JSON.stringify({ a: 1, filler: 'x'.repeat(4_096) }));
  expect(() => canonicalWith(value as JsonObject, { add: { a: 2 } })).toThrow(TypeError);
});

test('01 §3: members are sorted by UTF-16 code units, however many there are', () => {
  const names = Array.from({ length: 20_000 }, (_, index) => `${(index * 7_919) % 20_000}é`);
  const text = JSON.stringify(Object.fromEntries(names.map((name) => [name, 0])));
  const { value, steps } = prepared(text);
  expect(canonicalJson(value)).toBe(canonicalJson(parseJson(text)));
  expect(steps).toBeGreaterThan(20);
});

test('a long list is formatted in steps', () => {
  const text = JSON.stringify({ list: Array.from({ length: 50_000 }, (_, index) => [index]) });
  const { value, steps } = prepared(text);
  expect(canonicalJson(value)).toBe(text);
  expect(steps).toBeGreaterThan(20);
});
