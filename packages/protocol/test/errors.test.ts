import { describe, expect, test } from 'vitest';
import {
  badRequest,
  type ErrorCode,
  errorCatalogue,
  errorCodeOfRpc,
  isErrorCode,
  ProtocolError,
  rpcErrors,
} from '../src/index.ts';
import { tableRows } from './methods/chapters.ts';

const chapter = '02-transport-and-sessions.md';

describe('02 §4.1: the catalogue of errors', () => {
  test('is the table of the chapter, codes, statuses, categories and order', () => {
    const table = tableRows(chapter, '### 4.1 ')
      .filter(([code = '']) => /^[a-z_]+$/.test(code))
      .map(([code, rpc, http, category = '']) => [code, Number(rpc), Number(http), category]);
    const catalogue = Object.entries(errorCatalogue).map(([code, { rpc, http, category }]) => [
      code,
      rpc,
      http,
      category.charAt(0).toUpperCase() + category.slice(1),
    ]);
    expect(table.length).toBe(20);
    expect(catalogue).toEqual(table);
  });

  test('01 §19 gives the same codes', () => {
    const rows = tableRows('01-foundations.md', '## 19.').filter((row) => row.length === 4);
    const named = rows.filter(([, code = '']) => isErrorCode(code));
    expect(named.length).toBe(11);
    for (const [, code, rpc, http] of named) {
      const entry = errorCatalogue[code as ErrorCode];
      expect([code, entry.rpc, entry.http]).toEqual([code, Number(rpc), Number(http)]);
    }
  });

  test('02 §4.2: the two errors of JSON-RPC alone', () => {
    const codes = tableRows(chapter, '### 4.2 ').map(([code]) => Number(code));
    expect(codes).toEqual(expect.arrayContaining(Object.values(rpcErrors)));
    expect(rpcErrors).toEqual({ parse_error: -32700, invalid_request: -32600 });
  });

  test('every JSON-RPC code belongs to one error, and maps back to it', () => {
    for (const [code, { rpc }] of Object.entries(errorCatalogue)) {
      expect(errorCodeOfRpc(rpc)).toBe(code);
    }
    expect(errorCodeOfRpc(-32700)).toBe(undefined);
    expect(errorCodeOfRpc(0)).toBe(undefined);
  });

  test.each(['', 'BAD_REQUEST', 'toString', '__proto__', 'constructor'])(
    '%j is no code',
    (text) => {
      expect(isErrorCode(text)).toBe(false);
    },
  );
});

describe('ProtocolError', () => {
  test('carries code, message, data and cause', () => {
    const cause = new Error('inner');
    const error = new ProtocolError('rate_limited', 'slow down', {
      data: { retry_after: 30 },
      cause,
    });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'ProtocolError', code: 'rate_limited', cause });
    expect(error.data).toEqual({ retry_after: 30 });
    expect(Object.hasOwn(new ProtocolError('forbidden', 'x'), 'cause')).toBe(false);
    expect(new ProtocolError('forbidden', 'x').data).toBe(undefined);
  });

  test('badRequest puts the path in front', () => {
    expect(badRequest('a.b', 'expected x')).toMatchObject({
      code: 'bad_request',
      message: 'a.b: expected x',
    });
    expect(badRequest('', 'expected x').message).toBe('expected x');
  });

  test('badRequest shows the start of a long path only, in well-formed Unicode', () => {
    const name = `a${'😀'.repeat(1_000)}`;
    const { message } = badRequest(name, 'expected x');
    expect(message.length).toBeLessThan(250);
    expect(message.startsWith('a😀😀')).toBe(true);
    expect(message.endsWith('…: expected x')).toBe(true);
    expect(message.isWellFormed()).toBe(true);
    expect(badRequest('a'.repeat(200), 'x').message).toBe(`${'a'.repeat(200)}: x`);
  });
});
