import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diagnoseEnvelope, parseJson } from '../../src/json/index.ts';

/** A request text with members put in place of the usual ones. */
function request(members: Record<string, string> = {}): string {
  const all = { jsonrpc: '"2.0"', id: '7', method: '"a.b"', params: '{}', ...members };
  return `{${Object.entries(all)
    .filter(([, source]) => source !== '')
    .map(([name, source]) => `"${name}":${source}`)
    .join(',')}}`;
}

/** Diagnoses a text that the strict parser refuses, as it must. */
function diagnose(text: string) {
  expect(() => parseJson(text)).toThrow();
  return diagnoseEnvelope(text);
}

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** Every way to break a narrower rule of 01 section 2.1 inside a value. */
const brokenValues = [
  '1.0',
  '1e2',
  '-0',
  '9007199254740992',
  '-9007199254740992',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '{"a":1,"a":1}',
  '{"a":1,"\\u0061":1}',
  '{"\\ud800":1}',
  '[{"b":[0.5]}]',
  deep(17),
];

describe('01 §19, 02 §4.2: which error a refused envelope gets', () => {
  test.each([
    '',
    '{',
    'nul',
    '{"id":7}x',
    '{"id":7,}',
    "{'id':7}",
    '\ufeff{"id":7}',
    '{"id":01}',
    '{"id":7,"params":{"a":"\u0001"}}',
    '{"id":7,"params":{"a":"\\x"}}',
    '{"id":7,"params":{"a":"\ud800"}}',
    '['.repeat(100_000),
  ])('what is not RFC 8259 JSON in Unicode is -32700 with id null: %j', (text) => {
    expect(diagnose(text)).toEqual({ rpc: -32700, id: null });
  });

  test.each(brokenValues)('a fault inside params is -32602 with the id: %s', (value) => {
    expect(diagnose(request({ params: `{"a":${value}}` }))).toEqual({ rpc: -32602, id: 7 });
    expect(diagnose(request({ params: `{"a":${value}}`, id: '"x"' }))).toEqual({
      rpc: -32602,
      id: 'x',
    });
  });

  test.each(brokenValues)('params that is itself at fault is -32602: %s', (value) => {
    expect(diagnose(request({ params: value }))).toEqual({ rpc: -32602, id: 7 });
  });

  test.each(brokenValues)('a fault in another member is -32600 with the id: %s', (value) => {
    expect(diagnose(request({ extension: value }))).toEqual({ rpc: -32600, id: 7 });
    expect(diagnose(request({ method: value }))).toEqual({ rpc: -32600, id: 7 });
  });

  test.each(brokenValues)('an id at fault is -32600 with id null: %s', (value) => {
    expect(diagnose(request({ id: value }))).toEqual({ rpc: -32600, id: null });
  });

  test('a fault of the envelope weighs more than one inside params, in either order', () => {
    expect(diagnose('{"x":1.0,"jsonrpc":"2.0","id":1,"method":"m","params":{"a":-0}}')).toEqual({
      rpc: -32600,
      id: 1,
    });
    expect(diagnose(request({ params: '-0', x: '1.0' }))).toEqual({ rpc: -32600, id: 7 });
  });

  test('a repeated member of the envelope is -32600, also when spelled with an escape', () => {
    expect(diagnose('{"jsonrpc":"2.0","id":7,"method":"m","method":"m"}')).toEqual({
      rpc: -32600,
      id: 7,
    });
    const params = '{"jsonrpc":"2.0","id":7,"method":"m","params":{},"p\\u0061rams":{}}';
    expect(diagnose(params)).toEqual({ rpc: -32600, id: 7 });
    const extension = '{"jsonrpc":"2.0","id":7,"method":"m","__proto__":1,"__proto__":1}';
    expect(diagnose(extension)).toEqual({ rpc: -32600, id: 7 });
  });

  test('a repeated id is null, even with the same value', () => {
    expect(diagnose('{"jsonrpc":"2.0","id":7,"id":7,"method":"m"}')).toEqual({
      rpc: -32600,
      id: null,
    });
    expect(diagnose('{"jsonrpc":"2.0","id":7,"i\\u0064":8,"id":9,"method":"m"}')).toEqual({
      rpc: -32600,
      id: null,
    });
  });

  test.each(['null', 'true', '[]', '{}', '""', `"${'é'.repeat(64)}"`, '-9007199254740991'])(
    'an id of %s is echoed only where it is a valid one',
    (id) => {
      const value: unknown = JSON.parse(id);
      const valid = typeof value === 'string' || typeof value === 'number';
      expect(diagnose(request({ id, params: '{"a":-0}' }))).toEqual(
        valid ? { rpc: -32602, id: value } : { rpc: -32600, id: null },
      );
    },
  );

  test('02 §3.4: an id over 128 UTF-8 bytes is not echoed', () => {
    expect(diagnose(request({ id: `"${'é'.repeat(64)}a"`, params: '-0' }))).toEqual({
      rpc: -32600,
      id: null,
    });
  });

  test.each([
    ['jsonrpc', ''],
    ['jsonrpc', '"2"'],
    ['jsonrpc', '2'],
    ['method', ''],
    ['method', 'null'],
  ])('02 §3.4: an envelope that is no request is -32600 with the id: %s %s', (name, source) => {
    expect(diagnose(request({ [name]: source, params: '-0' }))).toEqual({ rpc: -32600, id: 7 });
  });

  test.each(['[{"id":7,"a":-0}]', '-0', '"\\ud800"', deep(18)])(
    'a root that is no object is -32600 with id null: %s',
    (text) => {
      expect(diagnose(text)).toEqual({ rpc: -32600, id: null });
    },
  );

  test('depth counts from the root of the envelope', () => {
    expect(() => parseJson(request({ params: deep(16) }))).not.toThrow();
    expect(diagnose(request({ params: deep(17) }))).toEqual({ rpc: -32602, id: 7 });
  });

  test('brackets, quotes and commas inside strings do not mislead', () => {
    const odd = '"}],{[\\"\\\\"';
    const text = ` { "x" : ${odd} , "jsonrpc" : "2.0","id":7,"method":"m","params":{"a":[${odd},-0]}}`;
    expect(diagnose(text)).toEqual({ rpc: -32602, id: 7 });
  });

  test('a message of 1 MiB made to be costly is diagnosed', () => {
    const size = 1_048_576;
    const nested = request({ params: deep(500_000) });
    expect(diagnose(nested)).toEqual({ rpc: -32602, id: 7 });
    const escapes = request({ params: `["${'\\\\'.repeat(size / 2)}",-0]` });
    expect(diagnose(escapes)).toEqual({ rpc: -32602, id: 7 });
    const names = request({ params: '-0' }).slice(0, -1) + ',"a":0'.repeat(170_000);
    expect(diagnose(`${names}}`)).toEqual({ rpc: -32600, id: 7 });
    const digits = request({ params: '9'.repeat(size) });
    expect(diagnose(digits)).toEqual({ rpc: -32602, id: 7 });
  });

  test('valid members next to one broken member change neither id nor code', () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 3 }),
        fc.constantFrom(...brokenValues),
        fc.constantFrom('extra', 'params'),
        (json, broken, name) => {
          const members = name === 'params' ? { params: broken } : { params: json, extra: broken };
          expect(diagnoseEnvelope(request(members))).toEqual({
            rpc: name === 'params' ? -32602 : -32600,
            id: 7,
          });
        },
      ),
    );
  });
});
