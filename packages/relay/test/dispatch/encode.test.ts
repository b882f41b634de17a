import { ProtocolError } from '@posthouse/protocol';
import { canonicalJson, isJsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeRelayError, encodeResult } from '../../src/dispatch/encode.ts';
import {
  encodeFailure,
  encodeSuccess,
  fitsMessage,
  readEnvelope,
} from '../../src/dispatch/envelope.ts';
import { JsonText, type ResultValue } from '../../src/dispatch/handler.ts';

describe('result objects', () => {
  test('stored text leaves as it is, everything around it is written', () => {
    const stored = '{"b":1,"a":"\\u00e9"}';
    const result = { entry: new JsonText(stored), list: [new JsonText('1'), 2], none: undefined };
    expect(encodeResult(result)).toBe(`{"entry":${stored},"list":[1,2]}`);
  });

  test.each([null, true, 0, 'x', [], {}, '"\\\n\u2028'])('%j is written as JSON', (value) => {
    expect(parseJson(encodeResult(value as ResultValue))).toEqual(value);
  });

  test('any value comes back the same, whichever parts of it are stored text', () => {
    const json = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constant(null),
        fc.boolean(),
        fc.maxSafeInteger().map((n) => n + 0),
        fc.string({ unit: 'grapheme' }),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(fc.string(), tie('value'), { maxKeys: 4 }),
      ) as fc.Arbitrary<JsonValue>,
    })).value;
    fc.assert(
      fc.property(json, fc.infiniteStream(fc.boolean()), (value, coins) => {
        const stored = (part: JsonValue): ResultValue => {
          if (coins.next().value) return new JsonText(canonicalJson(part));
          if (Array.isArray(part)) return part.map(stored);
          if (!isJsonObject(part)) return part as ResultValue;
          return Object.fromEntries(
            Object.entries(part).map(([name, member]) => [name, stored(member as JsonValue)]),
          );
        };
        expect(canonicalJson(parseJson(encodeResult(stored(value))))).toBe(canonicalJson(value));
      }),
    );
  });
});

describe('02 §3: envelopes', () => {
  test.each(['x', '', '"\\', 7, -1])('the id %j is written as it came', (id) => {
    const { id: answered, result } = JSON.parse(encodeSuccess(id, null));
    expect([answered, result]).toEqual([id, null]);
  });

  test('data is there only where an error has some', () => {
    const plain = new ProtocolError('not_found', 'nothing');
    const limited = new ProtocolError('rate_limited', 'slow', { data: { retry_after: 3 } });
    expect(JSON.parse(encodeFailure(1, plain))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32010, message: 'nothing' },
    });
    expect(JSON.parse(encodeFailure(1, limited)).error.data).toEqual({ retry_after: 3 });
    expect(JSON.parse(encodeRelayError(plain))).toEqual({ code: 'not_found', message: 'nothing' });
    expect(JSON.parse(encodeRelayError(limited)).data).toEqual({ retry_after: 3 });
  });

  test('§3.3: 1 MiB fits one message, counted in bytes, and one more does not', () => {
    const empty = encodeSuccess(1, '').length;
    const ascii = (bytes: number) => encodeSuccess(1, 'x'.repeat(bytes - empty));
    expect(fitsMessage(ascii(1_048_576))).toBe(true);
    expect(fitsMessage(ascii(1_048_577))).toBe(false);
    expect(fitsMessage(encodeSuccess(1, '€'.repeat(349_512)))).toBe(true);
    expect(fitsMessage(encodeSuccess(1, '€'.repeat(349_530)))).toBe(false);
  });

  test('no text makes the reader throw', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const { kind } = readEnvelope(new TextEncoder().encode(text));
        expect(['request', 'refused']).toContain(kind);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(readEnvelope(bytes).kind).toBe('refused');
      }),
    );
  });
});
