import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../src/crypto/index.ts';
import {
  AccountId,
  Counter,
  checkNoNull,
  checkObject,
  checkSchema,
  checkText,
  type ErrorCode,
  Network,
  ProtocolError,
  RelayId,
  type TSchema,
  Type,
  UnixSeconds,
} from '../src/index.ts';
import { canonicalJson, type JsonObject, parseJson } from '../src/json/index.ts';
import {
  checkBase64url,
  checkCanonicalSize,
  checkObjectSize,
  DeviceId,
  MessageId,
  Sha256,
  Signature,
} from '../src/schema.ts';
import { protocolJson } from './json/arbitraries.ts';

const network = new Network({
  context: `neo:1:0x${'00'.repeat(20)}`,
  word: 'word',
  primitives: noblePrimitives,
});

/** The error of a check, or `undefined` where it passes. */
function failure(check: () => void): { code: ErrorCode; message: string } | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { code: error.code, message: error.message };
  }
}

const passes = (schema: TSchema, value: unknown) =>
  failure(() => checkSchema(schema, value)) === undefined;

describe('checkSchema', () => {
  const Inner = Type.Object({ n: Counter, list: Type.Optional(Type.Array(Type.String())) });
  const Outer = Type.Object({ inner: Inner });

  test('a value of the shape passes, with unknown members', () => {
    expect(passes(Outer, { inner: { n: 1, list: ['a'], other: null }, more: 1 })).toBe(true);
  });

  test.each<[string, unknown, string]>([
    ['a missing member', {}, 'must have required properties inner'],
    ['a nested missing member', { inner: {} }, 'at.inner: must have required properties n'],
    ['a member of another type', { inner: { n: '1' } }, 'at.inner.n: must be integer'],
    ['an element of another type', { inner: { n: 1, list: ['a', 2] } }, 'at.inner.list.1: must be'],
    [
      'null for an optional member',
      { inner: { n: 1, list: null } },
      'at.inner.list: must be array',
    ],
    ['an array for an object', [], 'at: must be object'],
    ['null for an object', null, 'at: must be object'],
    ['a member of the prototype', JSON.parse('{"__proto__":{"inner":{"n":1}}}'), 'required'],
  ])('%s is bad_request, named by its path', (_what, value, message) => {
    expect(failure(() => checkSchema(Outer, value, 'at'))).toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining(message),
    });
  });

  test('an array is no object even if all members are optional', () => {
    expect(passes(Type.Object({ a: Type.Optional(Type.String()) }), [])).toBe(false);
  });

  test('the fault of a huge value is located', () => {
    const list = Array.from({ length: 100_000 }, (_, index) => index);
    expect(failure(() => checkSchema(Outer, { inner: { n: 1, list } }, 'at'))).toEqual({
      code: 'bad_request',
      message: 'at.inner.list.0: must be string',
    });
  });

  test('no message repeats a value', () => {
    const message = failure(() => checkSchema(Outer, { inner: { n: 'secret' } }))?.message;
    expect(message).not.toContain('secret');
  });
});

describe('the shapes all objects share', () => {
  test.each<[string, TSchema, unknown, boolean]>([
    ['Counter', Counter, 0, true],
    ['Counter', Counter, 2 ** 53 - 1, true],
    ['Counter', Counter, 2 ** 53, false],
    ['Counter', Counter, -1, false],
    ['Counter', Counter, 1.5, false],
    ['Counter', Counter, '1', false],
    ['UnixSeconds', UnixSeconds, -(2 ** 53 - 1), true],
    ['UnixSeconds', UnixSeconds, -(2 ** 53), false],
    ['RelayId', RelayId, `0x${'0a'.repeat(20)}`, true],
    ['RelayId', RelayId, `0x${'0A'.repeat(20)}`, false],
    ['RelayId', RelayId, `0X${'0a'.repeat(20)}`, false],
    ['RelayId', RelayId, `0x${'0a'.repeat(20)}\n`, false],
    ['RelayId', RelayId, '0a'.repeat(20), false],
    ['AccountId', AccountId, 'neo:0:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo', true],
    ['AccountId', AccountId, 'neo:00:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo', false],
    ['AccountId', AccountId, 'neo:1:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo\n', false],
    ['AccountId', AccountId, 'neo:1:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgW', false],
    ['AccountId', AccountId, 'eth:1:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo', false],
    ['DeviceId', DeviceId, `dev_${'A'.repeat(22)}`, true],
    ['DeviceId', DeviceId, `dev_${'A'.repeat(21)}B`, false],
    ['MessageId', MessageId, `msg_${'A'.repeat(22)}`, true],
    ['MessageId', MessageId, `MSG_${'A'.repeat(22)}`, false],
    ['Sha256', Sha256, `sha256:${'A'.repeat(43)}`, true],
    ['Sha256', Sha256, `sha256:${'A'.repeat(42)}B`, false],
    ['Signature', Signature, 'A'.repeat(86), true],
    ['Signature', Signature, 'A'.repeat(85), false],
  ])('%s: %# %j', (_name, schema, value, valid) => {
    expect(passes(schema, value)).toBe(valid);
  });
});

describe('01 §2.6: checkObject', () => {
  const definition = { type: 'thing', schema: Type.Object({ $type: Type.String() }) };
  const check = (value: unknown) => failure(() => checkObject(network, definition, value, 'at'));

  test('Y1: the full name with the service word of the network passes', () => {
    expect(check({ $type: 'word.thing', unknown: [null] })).toBe(undefined);
  });

  test.each<[string, unknown]>([
    ['another word', { $type: 'svc.thing' }],
    ['a successor', { $type: 'word.thing.v2' }],
    ['another case', { $type: 'Word.thing' }],
    ['a trailing line feed', { $type: 'word.thing\n' }],
    ['a missing type', {}],
    ['a null type', { $type: null }],
    ['a number', { $type: 1 }],
    ['a type of the prototype', JSON.parse('{"__proto__":{"$type":"word.thing"}}')],
    ['a plain member called type', { type: 'word.thing' }],
    ['an array', []],
    ['null', null],
    ['a text', 'word.thing'],
    ['nothing', undefined],
  ])('Y1, Y2, Y7: %s is bad_request', (_what, value) => {
    expect(check(value)).toMatchObject({ code: 'bad_request' });
  });

  test.each(['neo:1:0x0000000000000000000000000000000000000000', null, ''])(
    '01 §4 K2: a $context of %j on the wire is bad_request',
    (context) => {
      expect(check({ $type: 'word.thing', $context: context })).toMatchObject({
        code: 'bad_request',
      });
    },
  );
});

describe('01 §4 K2: $context below the root', () => {
  const definition = { type: 'thing', schema: Type.Object({ $type: Type.String() }) };
  const check = (member: unknown) =>
    failure(() => checkObject(network, definition, { $type: 'word.thing', a: [member] }, 'at'));

  test.each([
    ['a known type', { $type: 'word.thing', $context: network.context }],
    ['a type unknown here', { b: { $type: 'word.more', $context: 'x' } }],
    ['null as its value', { $context: null, $type: 'word.thing' }],
    ['a name of the prototype', Object.fromEntries([['__proto__', { $type: '', $context: '' }]])],
  ])('in a nested object with a $type it is bad_request: %s', (_what, member) => {
    expect(check(member)?.code).toBe('bad_request');
  });

  test('the message names the object', () => {
    expect(check({ b: { $type: 'x', $context: 'secret' } })?.message).toBe(
      'at.a.0.b: $context is never transmitted',
    );
  });

  test('in a value without a $type of its own it is a name like any other', () => {
    expect(check({ $context: 'x', b: [{ $type: 'x' }] })).toBe(undefined);
  });
});

describe('01 §2.1 J9: checkNoNull', () => {
  test('finds null at any depth, in unknown members and arrays too', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', '__proto__'), { maxLength: 5 }), (path) => {
        const wrap = (inner: unknown) =>
          path.reduceRight<unknown>((value, name) => Object.fromEntries([[name, [value]]]), inner);
        expect(failure(() => checkNoNull(wrap(null) as JsonObject))?.code).toBe('bad_request');
        expect(failure(() => checkNoNull(wrap(0) as JsonObject))).toBe(undefined);
      }),
    );
    expect(failure(() => checkNoNull({ a: [{ b: null }] }, 'at'))?.message).toBe(
      'at.a.0.b: null is not allowed',
    );
  });
});

describe('01 §3: checkCanonicalSize', () => {
  test('counts UTF-8 bytes of the complete object; the limit itself passes', () => {
    const text = '{"a":"é😀"}';
    expect(Buffer.byteLength(text)).toBe(14);
    expect(checkCanonicalSize({ a: 'é😀' }, 14)).toBe(text);
    expect(failure(() => checkCanonicalSize({ a: 'é😀' }, 13, 'at'))).toEqual({
      code: 'request_too_large',
      message: 'at: over 13 bytes',
    });
    expect(failure(() => checkCanonicalSize({ a: 'é😀' }, 10))?.code).toBe('request_too_large');
  });
});

describe('01 §3: checkObjectSize', () => {
  test('counts what the canonical form has, whatever the object is', () => {
    const objects = fc.dictionary(fc.string({ unit: 'grapheme' }), protocolJson);
    fc.assert(
      fc.property(objects, (value) => {
        const object = parseJson(JSON.stringify(value)) as JsonObject;
        const bytes = Buffer.byteLength(canonicalJson(object));
        expect(() => checkObjectSize(object, bytes)).not.toThrow();
        expect(failure(() => checkObjectSize(object, bytes - 1, 'at'))).toEqual({
          code: 'request_too_large',
          message: `at: over ${bytes - 1} bytes`,
        });
      }),
    );
  });

  test('an own member named __proto__ or toJSON counts like any other', () => {
    const text = '{"__proto__":[1],"toJSON":{"a":"é"}}';
    const object = parseJson(text) as JsonObject;
    expect(() => checkObjectSize(object, Buffer.byteLength(text))).not.toThrow();
    expect(failure(() => checkObjectSize(object, Buffer.byteLength(text) - 1))?.code).toBe(
      'request_too_large',
    );
  });
});

describe('01 §2.4 T1, T2: checkText', () => {
  const check = (text: string, allowEmpty: boolean, maxBytes?: number) =>
    failure(() => checkText(text, { allowEmpty, ...(maxBytes && { maxBytes }) }, 'at'))?.code;

  test('the limit is in UTF-8 bytes and passes itself', () => {
    expect(check('é'.repeat(128), true, 256)).toBe(undefined);
    expect(check(`${'é'.repeat(128)}a`, true, 256)).toBe('bad_request');
  });

  test('the empty text passes if the field allows it, white space alone never', () => {
    expect(check('', true)).toBe(undefined);
    expect(check('', false)).toBe('bad_request');
    expect(check(' \u3000', true)).toBe('bad_request');
    expect(check(' \u3000', false)).toBe('bad_request');
    expect(check('\u200b', false)).toBe(undefined);
  });
});

describe('01 §2.5: checkBase64url', () => {
  test.each([
    ['', 0, true],
    ['', 1, false],
    ['A'.repeat(22), 16, true],
    ['A'.repeat(20), 16, false],
    ['A'.repeat(21), 1, false],
    ['AB', 1, false],
    ['AA==', 1, false],
  ])('%j of at least %i bytes: %s', (text, minBytes, valid) => {
    expect(failure(() => checkBase64url(text, minBytes, 'at'))?.code).toBe(
      valid ? undefined : 'bad_request',
    );
  });
});
