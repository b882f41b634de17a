import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalBytes,
  canonicalJson,
  canonicalTwice,
  canonicalWith,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '../../src/json/index.ts';
import { objectOf, protocolJson } from './arbitraries.ts';

/** RFC 8785 written plainly, from its text: the judge. */
function rfc8785(value: unknown): string {
  if (value === null || typeof value === 'boolean') return `${value}`;
  if (typeof value === 'number') return BigInt(value).toString();
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return `[${value.map(rfc8785).join(',')}]`;
  const members = Object.entries(value as object).sort(([a], [b]) => compareUnits(a, b));
  return `{${members.map(([name, member]) => `${quote(name)}:${rfc8785(member)}`).join(',')}}`;
}

function compareUnits(a: string, b: string): number {
  for (let at = 0; at < a.length && at < b.length; at += 1) {
    const difference = a.charCodeAt(at) - b.charCodeAt(at);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

const short = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\b', '\\b'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\f', '\\f'],
  ['\r', '\\r'],
]);

function quote(text: string): string {
  const parts = Array.from(text, (character) => {
    const code = character.codePointAt(0) as number;
    const escaped = short.get(character);
    return escaped ?? (code < 0x20 ? `\\u00${code.toString(16).padStart(2, '0')}` : character);
  });
  return `"${parts.join('')}"`;
}

const json = protocolJson as fc.Arbitrary<JsonValue>;

describe('01 §3: canonical JSON', () => {
  test('equals RFC 8785 written plainly', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(value)).toBe(rfc8785(value));
      }),
      { numRuns: 1_000 },
    );
  });

  test('is a fixed point: reading it gives the same value and the same text again', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value);
        expect(isDeepStrictEqual(parseJson(text), value)).toBe(true);
        expect(canonicalJson(parseJson(text))).toBe(text);
      }),
    );
  });

  test('does not depend on the order of members, and does on that of elements', () => {
    const names = ['z', 'a', '10', '9', '__proto__', 'é', '\ufb33', '😀'];
    fc.assert(
      fc.property(fc.shuffledSubarray(names, { minLength: names.length }), (order) => {
        const object = objectOf(order.map((name) => [name, name])) as JsonObject;
        expect(canonicalJson(object)).toBe(
          '{"10":"10","9":"9","__proto__":"__proto__","a":"a","z":"z","é":"é","😀":"😀","\ufb33":"\ufb33"}',
        );
        expect(canonicalJson(order)).toBe(JSON.stringify(order));
      }),
    );
  });

  test('sorts by UTF-16 code units: the example of the chapter', () => {
    const names = ['€', '\r', '1', '\ufb33', '\u{1f600}', '\u0080', 'ö'];
    const object = objectOf(names.map((name) => [name, 0])) as JsonObject;
    const found = [...canonicalJson(object).matchAll(/"([^"]+)":0/g)].map(([, name]) => name);
    expect(found).toEqual(['\\r', '1', '\u0080', 'ö', '€', '\u{1f600}', '\ufb33']);
  });

  test('absent, null and [] give three texts', () => {
    expect(canonicalJson({})).toBe('{}');
    expect(canonicalJson({ a: null })).toBe('{"a":null}');
    expect(canonicalJson({ a: [] })).toBe('{"a":[]}');
  });

  test('escapes exactly what the chapter names', () => {
    const all = Array.from({ length: 0xa1 }, (_, code) => String.fromCharCode(code)).join('');
    expect(canonicalJson(all)).toBe(quote(all));
    expect(canonicalJson('/\u007f\u2028\u2029\ufeff')).toBe('"/\u007f\u2028\u2029\ufeff"');
    expect(canonicalJson('e\u0301')).not.toBe(canonicalJson('é'));
  });

  test.each<[string, unknown]>([
    ['a fraction', 1.5],
    ['negative zero', -0],
    ['2^53', 2 ** 53],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['an undefined element', [undefined]],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a name', { '\udc00': 1 }],
  ])('refuses %s', (_name, value) => {
    expect(() => canonicalJson(value as JsonValue)).toThrow(TypeError);
  });

  test('bytes are the UTF-8 of the text', () => {
    expect(Buffer.from(canonicalBytes({ b: 'é😀' })).toString('utf8')).toBe('{"b":"é😀"}');
  });
});

describe('01 §4: members left out and added', () => {
  const object = fc.dictionary(fc.constantFrom('a', 'b', '$type', '__proto__', 'z'), json);

  test('equals the canonical form of a copy changed by hand', () => {
    fc.assert(
      fc.property(object, fc.subarray(['a', 'z', 'x']), (members, omit) => {
        const kept = Object.entries(members).filter(([name]) => !omit.includes(name));
        const changed = objectOf([...kept, ['$context', 'c']]) as JsonObject;
        const before = JSON.stringify(members);
        expect(canonicalWith(members as JsonObject, { omit, add: { $context: 'c' } })).toBe(
          canonicalJson(changed),
        );
        expect(JSON.stringify(members)).toBe(before);
      }),
    );
  });

  test('leaves out at the root only (K4)', () => {
    const value = { s: 1, inner: { s: 2 }, list: [{ s: 3 }] };
    expect(canonicalWith(value, { omit: ['s'] })).toBe('{"inner":{"s":2},"list":[{"s":3}]}');
  });

  test('a member cannot be added twice', () => {
    expect(() => canonicalWith({ a: 1 }, { add: { a: 1 } })).toThrow(TypeError);
    expect(canonicalWith({ a: 1 }, { omit: ['a'], add: { a: 2 } })).toBe('{"a":2}');
  });
});

describe('texts made at once', () => {
  const names = fc.constantFrom('$context', 'a', 'b', 'é', '__proto__');
  const object = fc.dictionary(names, json).map((members) => ({ ...members }) as JsonObject);

  test('01 §4: canonicalTwice equals canonicalJson and canonicalWith', () => {
    fc.assert(
      fc.property(object, fc.subarray(['a', 'b', '$context']), (value, omit) => {
        const add = { $c: 1, z: [value] };
        expect(canonicalTwice(value, { omit, add })).toEqual({
          complete: canonicalJson(value),
          changed: canonicalWith(value, { omit, add }),
        });
      }),
    );
    expect(() => canonicalTwice({ a: 1 }, { add: { a: 2 } })).toThrow(TypeError);
  });

  test('texts of members that were formatted before change nothing', () => {
    fc.assert(
      fc.property(object, fc.subarray(['a', 'b', 'c']), (value, known) => {
        const present = known.filter((name) => Object.hasOwn(value, name));
        const texts = new Map(
          present.map((name) => [name, canonicalJson(value[name] as JsonValue)]),
        );
        expect(canonicalWith(value, { texts })).toBe(canonicalJson(value));
      }),
    );
  });
});

test.each([63, 64, 65])(
  '01 §3: more names of %d units than are remembered keep their texts',
  (units) => {
    const names = Array.from({ length: 1_002 }, (_, index) => `${index}"`.padEnd(units, 'x'));
    for (const round of [1, 2]) {
      for (const name of names) {
        const object = { '': round, [name]: round };
        expect(canonicalJson(object)).toBe(`{"":${round},${JSON.stringify(name)}:${round}}`);
      }
    }
  },
);
