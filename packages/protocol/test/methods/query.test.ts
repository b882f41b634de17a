import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  channelMethods,
  decodeQuery,
  encodeQuery,
  type MethodDefinition,
  Type,
} from '../../src/index.ts';
import { baseMethods } from '../../src/methods/base.ts';
import { defineMethod } from '../../src/methods/definition.ts';
import { codeOf } from '../identity/appendix.ts';

const sample = defineMethod({
  name: 'sample.read',
  http: ['GET'],
  session: 'none',
  params: Type.Object({
    text: Type.String(),
    count: Type.Optional(Type.Integer()),
    flag: Type.Optional(Type.Boolean()),
    mode: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
    list: Type.Optional(Type.Array(Type.String())),
    object: Type.Optional(Type.Object({})),
    mixed: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
  }),
  result: null,
  queryRefuses: ['$secret'],
  source: 'test',
});
const decode = (raw: string, definition: MethodDefinition = sample) => decodeQuery(definition, raw);
const fails = (raw: string) => codeOf(() => decode(raw));

describe('02 §2.4: decoding a query', () => {
  test('no query is no parameter', () => {
    expect(decode('')).toEqual({});
    expect(decode('&&')).toEqual({});
  });

  test('each parameter gets the type its field has', () => {
    expect(decode('text=5&count=5&flag=true&mode=a')).toEqual({
      text: '5',
      count: 5,
      flag: true,
      mode: 'a',
    });
  });

  test('rule 1: any valid percent-encoding is decoded, exactly once, in names and values', () => {
    expect(decode('t%65xt=%41%2c%26%3D%3d')).toEqual({ text: 'A,&==' });
    expect(decode('text=%2541')).toEqual({ text: '%41' });
    expect(decode('text=%E2%82%AC%F0%9F%98%80')).toEqual({ text: '€😀' });
    expect(decode('text=neo%3A1%3aN')).toEqual({ text: 'neo:1:N' });
    expect(decode('text=neo:1:N/?@')).toEqual({ text: 'neo:1:N/?@' });
    expect(decode('text=%00')).toEqual({ text: '\0' });
  });

  test('02 §18: + is a plus; only %20 is a space', () => {
    expect(decode('text=a+b%20c%2B')).toEqual({ text: 'a+b c+' });
  });

  test('only the first = separates', () => {
    expect(decode('text=a=b')).toEqual({ text: 'a=b' });
    expect(decode('text=')).toEqual({ text: '' });
    expect(decode('text')).toEqual({ text: '' });
    expect(decode('=x&text=y')).toEqual({ text: 'y' });
  });

  test.each([
    'text=%',
    'text=%4',
    'text=%zz',
    'text=%u0041',
    'text=%ff',
    'text=%c3',
    'text=%ED%A0%80',
    'text=%C0%AF',
    'te%xt=a',
    'unknown=%',
    'text=€',
    'text=a b',
    'text=a\n',
  ])('02 §18: %j is malformed', (raw) => {
    expect(fails(raw)).toBe('bad_request');
  });

  test.each([
    ['0', 0],
    ['-1', -1],
    ['7', 7],
    ['-0', undefined],
    ['00', undefined],
    ['01', undefined],
    ['+1', undefined],
    ['%2B1', undefined],
    ['1.0', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['', undefined],
    ['%201', undefined],
    ['１', undefined],
    ['9007199254740991', 9007199254740991],
    ['-9007199254740991', -9007199254740991],
    ['9007199254740992', undefined],
    ['-9007199254740992', undefined],
    ['9'.repeat(400), undefined],
  ])('rule 2: an integer has its shortest decimal form: %s', (text, value) => {
    const raw = `count=${text}`;
    if (value === undefined) expect(fails(raw)).toBe('bad_request');
    else expect(decode(raw)).toEqual({ count: value });
  });

  test.each(['True', 'TRUE', '1', '0', 'yes', '', 'true%20', 'null'])(
    'rule 2: a boolean is lowercase true or false, not %j',
    (text) => {
      expect(decode('flag=false')).toEqual({ flag: false });
      expect(fails(`flag=${text}`)).toBe('bad_request');
    },
  );

  test('rule 4: a defined scalar occurs once, however it is spelled', () => {
    expect(fails('text=a&text=a')).toBe('bad_request');
    expect(fails('text=a&t%65xt=b')).toBe('bad_request');
  });

  test('rule 5: arrays, objects and types that are not certain have no form in a query', () => {
    for (const name of ['list', 'object', 'mixed']) {
      expect(fails(`${name}=a`)).toBe('bad_request');
    }
  });

  test('rule 6: unknown names are ignored, repeated ones and those of prototypes too', () => {
    expect(decode('zz=1&zz=2&text=a&TEXT=b&text%20=c')).toEqual({ text: 'a' });
    const odd = decode('__proto__=x&constructor=y&toString=z&text=a');
    expect(Object.keys(odd)).toEqual(['text']);
    expect(Object.getPrototypeOf(odd)).toBe(Object.prototype);
  });

  test('rule 6: a name the method refuses in its GET form is not ignored', () => {
    for (const raw of ['$secret=1', '%24secret=', '$secret', 'text=a&$secret=1']) {
      expect(fails(raw)).toBe('bad_request');
    }
  });

  test.each(['$type', 'authorization', 'signer_certificate', 'created_at', 'device_signature'])(
    '03 §5.1: device.state.resolve refuses %s in a query',
    (name) => {
      const definition = baseMethods['device.state.resolve'];
      expect(decode('account=x&zz=1', definition)).toEqual({ account: 'x' });
      for (const value of ['', '1', 'x']) {
        const raw = `account=x&${encodeURIComponent(name)}=${value}`;
        expect(codeOf(() => decode(raw, definition))).toBe('bad_request');
      }
    },
  );

  test('a method without parameters ignores whatever comes', () => {
    expect(decode('a=1&a=2', baseMethods['relay.info'])).toEqual({});
  });

  test('parameters of real methods are converted', () => {
    const { 'message.timeline.sync': sync } = baseMethods;
    expect(decode('after=-1&limit=20', sync)).toEqual({ after: -1, limit: 20 });
    expect(decode('channel_id=chan_x&before=5', channelMethods['channel.read'])).toEqual({
      channel_id: 'chan_x',
      before: 5,
    });
  });
});

describe('encoding a query', () => {
  test('absent parameters leave nothing, the rest is percent-encoded', () => {
    const { 'profile.resolve': resolve, 'message.timeline.sync': sync } = baseMethods;
    expect(encodeQuery(sync, {})).toBe('');
    expect(encodeQuery(sync, { after: -1, limit: undefined })).toBe('after=-1');
    expect(encodeQuery(resolve, { account: 'neo:1:N+ &=%' })).toBe(
      'account=neo%3A1%3AN%2B%20%26%3D%25',
    );
  });

  test('what a query cannot express is refused', () => {
    for (const params of [{ list: ['a'] }, { object: {} }, { text: null }, { $secret: 'a' }]) {
      expect(() => encodeQuery(sample, params)).toThrow(TypeError);
    }
  });

  test('decoding gives back what was encoded', () => {
    const params = fc.record(
      {
        text: fc.string({ unit: 'grapheme' }),
        count: fc.maxSafeInteger().map((value) => value + 0),
        flag: fc.boolean(),
        mode: fc.constantFrom('a', 'b'),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(params, (given) => {
        expect(decode(encodeQuery(sample, given))).toEqual(given);
      }),
    );
  });
});
