/** Large texts are parsed in steps: with the same results and errors as at once. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  diagnoseEnvelope,
  diagnoseEnvelopeInSteps,
  factsOf,
  isJsonObject,
  JsonError,
  type JsonFacts,
  type JsonValue,
  parseJson,
  parseJsonInSteps,
} from '../../src/json/index.ts';
import { looseJsonText, mutatedJsonText, protocolJson } from './arbitraries.ts';

/** Takes all steps; returns the result, or the error, and how many steps there were. */
function take<T>(steps: Generator<undefined, T, undefined>) {
  for (let count = 1; ; count += 1) {
    try {
      const step = steps.next();
      if (step.done === true) return { count, result: step.value };
    } catch (error) {
      return { count, result: error };
    }
  }
}

function atOnce(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    return error;
  }
}

const texts = fc.oneof(
  looseJsonText,
  mutatedJsonText,
  protocolJson.map((value) => JSON.stringify(value)),
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify({ [text]: text })),
);

describe('01 §2.1: a text parsed in steps', () => {
  test('gives the same value or the same error as at once, however short the steps are', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 20 }), (text, length) => {
        const expected = atOnce(text);
        const { result } = take(parseJsonInSteps(text, { length }));
        expectSame(parts(result), parts(expected));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['numbers', `[${'1,'.repeat(50_000)}1]`],
    ['empty arrays', `[${'[],'.repeat(50_000)}1]`],
    ['members', `{${Array.from({ length: 20_000 }, (_, index) => `"m${index}":0`).join(',')}}`],
    ['one string of escapes', `"${'\\n'.repeat(80_000)}"`],
    ['one string of surrogate pairs', `"${'😀'.repeat(80_000)}"`],
    ['one name of escapes', `{"${'\\u0101'.repeat(40_000)}":1}`],
    ['deep values', `[${'[[[[[[[[[[[[]]]]]]]]]]]],'.repeat(8_000)}1]`],
    ['white space', `[${'1 ,\n\t'.repeat(40_000)}1]`],
  ])('has a step for each 16,384 characters: %s', (_, text) => {
    const { count, result } = take(parseJsonInSteps(text));
    expectSame(result, atOnce(text));
    expect(count).toBeGreaterThanOrEqual(Math.floor(text.length / 2_048));
  });

  test.each<[string, JsonValue]>([
    ['"a\\nb"', 'a\nb'],
    ['"\\n"', '\n'],
    ['"\\\\"', '\\'],
    ['"\\\\\\""', '\\"'],
    ['"ab\\u0061\\/c\\t"', 'aba/c\t'],
    ['"a😀b"', 'a😀b'],
    ['"😀😀"', '😀😀'],
    ['"a\\ud83d\\ude00b"', 'a😀b'],
    ['"é\\ud83d\\ude00😀\\r"', 'é😀😀\r'],
    ['["a\\n","b","\\tc","d"]', ['a\n', 'b', '\tc', 'd']],
    ['{"a\\nb":"c\\n"}', { 'a\nb': 'c\n' }],
    ['{"\\\\":1,"\\u0061":2}', { '\\': 1, a: 2 }],
    ['{"😀\\u0061":"\\ud83d\\ude00"}', { '😀a': '😀' }],
    ['{"\\u005f_proto__":{"\\u0061":1}}', JSON.parse('{"__proto__":{"a":1}}') as JsonValue],
    ['{"__prot\\u006f__":"\\n"}', JSON.parse('{"__proto__":"\\n"}') as JsonValue],
  ])('decodes the same strings wherever a step ends: %s', (text, value) => {
    expectSame(atOnce(text), value);
    for (let length = 1; length <= text.length; length += 1) {
      expectSame(take(parseJsonInSteps(text, { length })).result, value);
    }
  });

  test.each([
    ['{"a":1,"\\u0061":2}', 'repeated member name at offset 7'],
    ['{"\\u0061":1,"b":0,"a":2}', 'repeated member name at offset 18'],
    ['{"😀":1,"\\ud83d\\ude00":2}', 'repeated member name at offset 8'],
    ['{"__proto__":1,"\\u005f_proto__":2}', 'repeated member name at offset 15'],
    ['"ab\\x"', 'unknown escape at offset 3'],
    ['"\\n\\ud83d\\n"', 'lone surrogate at offset 3'],
    ['"\\n\\ude00"', 'lone surrogate at offset 3'],
    ['"😀\ud83d"', 'lone surrogate at offset 3'],
    ['"\\n\\u00g0"', 'malformed unicode escape at offset 5'],
    ['"\\n\\', 'unknown escape at offset 3'],
    ['"\\na', 'unterminated string at offset 4'],
    ['"\\na\n"', 'control character in a string at offset 4'],
  ])('refuses the same strings wherever a step ends: %j', (text, message) => {
    expect(parts(atOnce(text))).toMatchObject({ message });
    for (let length = 1; length <= text.length; length += 1) {
      const { result } = take(parseJsonInSteps(text, { length }));
      expect(parts(result)).toEqual(parts(atOnce(text)));
    }
  });

  test('leaves facts about large arrays and objects that a walk confirms', () => {
    const large = fc
      .array(protocolJson, { minLength: 1 })
      .map((values) => [...values, 'x'.repeat(4_096)]);
    fc.assert(
      fc.property(large, fc.boolean(), (values, hasContext) => {
        const inner = hasContext ? { values, $context: 1 } : { values };
        const text = JSON.stringify({ inner, list: values });
        const root = take(parseJsonInSteps(text, { length: 100 })).result as JsonValue;
        expect(factsOf(root)).toEqual(walk(root));
        const object = (root as { readonly inner: JsonValue }).inner;
        expect(factsOf(object)).toEqual(walk(object));
        expect(factsOf(parseJson(text))).toBe(undefined);
      }),
    );
  });
});

/** The parts of an error that callers see, or the value. */
function parts(outcome: unknown): unknown {
  if (!(outcome instanceof JsonError)) return outcome;
  const { fault, offset, path, message } = outcome;
  return { fault, offset, path, message };
}

/** Equal in everything: prototypes too, and members named as theirs. */
function expectSame(actual: unknown, expected: unknown): void {
  expect(isDeepStrictEqual(actual, expected)).toBe(true);
}

/** What {@link factsOf} says, found by a walk through the value. */
function walk(value: JsonValue): JsonFacts {
  const values = typeof value === 'object' && value !== null ? Object.values(value) : [];
  const below = values.map((member) => walk(member as JsonValue));
  return {
    hasNull: values.includes(null) || below.some(({ hasNull }) => hasNull),
    hasContext:
      (isJsonObject(value) && Object.hasOwn(value, '$context')) ||
      below.some(({ hasContext }) => hasContext),
    depth: values.length === 0 ? 0 : 1 + Math.max(...below.map(({ depth }) => depth)),
    items: isJsonObject(value)
      ? values.reduce<number>((sum, member) => sum + (Array.isArray(member) ? member.length : 0), 0)
      : 0,
  };
}

describe('01 §19: an envelope diagnosed in steps', () => {
  test('gets the same answer as at once', () => {
    const envelopes = fc
      .tuple(looseJsonText, looseJsonText)
      .map(([id, params]) => `{"jsonrpc":"2.0","id":${id},"method":"a.b","params":${params}}`);
    fc.assert(
      fc.property(
        fc.oneof(envelopes, mutatedJsonText),
        fc.integer({ min: 1, max: 20 }),
        (text, length) => {
          const { result } = take(diagnoseEnvelopeInSteps(text, length));
          expect(result).toEqual(diagnoseEnvelope(text));
        },
      ),
    );
  });

  const members = Array.from({ length: 20_000 }, (_, index) => `"m${index}":0`).join(',');
  const request = (params: string) => `{"jsonrpc":"2.0","id":7,"method":"a.b","params":${params}}`;
  test.each([
    ['faulty params', request(`[${'[0.5],'.repeat(50_000)}1]`), { rpc: -32602, id: 7 }, 1],
    ['deep params', request(`${'['.repeat(1e5)}${']'.repeat(1e5)}`), { rpc: -32602, id: 7 }, 1],
    // Scanned, then read.
    ['many members', `{"id":7,${members},"last":0.5}`, { rpc: -32600, id: 7 }, 2],
  ])('has a step for each 16,384 characters of %s', (_, text, fault, readings) => {
    const { count, result } = take(diagnoseEnvelopeInSteps(text));
    expect(result).toEqual(fault);
    expect(count).toBeGreaterThanOrEqual(readings * Math.floor(text.length / 2_048));
  });
});

test('01 §2.1: strings with escapes in texts that are read in turns do not mix', () => {
  const texts = ['a', 'b'].map((letter) => JSON.stringify(`${letter}\n`.repeat(5_000)));
  const readers = texts.map((text) => parseJsonInSteps(text));
  const results: unknown[] = [];
  for (let left = readers.length; left > 0; ) {
    for (const [index, reader] of readers.entries()) {
      const step = reader.next();
      if (step.done !== true || results[index] !== undefined) continue;
      results[index] = step.value;
      left -= 1;
    }
  }
  expect(results).toEqual(texts.map((text) => JSON.parse(text)));
});
