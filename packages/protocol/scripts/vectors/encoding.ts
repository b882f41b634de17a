/** Vectors of chapter 01, sections 2, 3 and 5.6: texts and their encodings. */
import { encodeBase64url } from '../../src/index.ts';
import { counting, VectorFile } from './fixture.ts';
import { hexOf } from './operations.ts';

const nested = (levels: number, inner = '') => '['.repeat(levels) + inner + ']'.repeat(levels);

export function jsonVectors(): VectorFile {
  const file = new VectorFile('Strict JSON and its canonical form', '01 §2.1, §3');
  for (const [name, text] of [
    ['empty object', '{}'],
    ['white space of all four kinds', ' \t\r\n{ "a" :\n1 }\r\n'],
    ['members sorted, arrays not', '{"z":[3,2,1],"a":{"b":true,"a":null}}'],
    ['code unit order', '{"€":1,"\\r":2,"1":3,"\\ufb33":4,"\\ud83d\\ude00":5,"\\u0080":6,"ö":7}'],
    ['names like numbers', '{"10":1,"9":2,"01":3,"-1":4}'],
    ['an empty name', '{"a":1,"":2}'],
    ['__proto__ and its kin', '{"toString":1,"__proto__":{"a":2},"constructor":3}'],
    ['an escaped name after a backslash', '[{"\\\\":1},{"\\u0061":1}]'],
    ['every short escape', '"\\"\\\\\\/\\b\\f\\n\\r\\t"'],
    ['control characters', '"\\u0000\\u0001\\u001f\\u007f"'],
    ['what needs no escape', '"/é😀\\u2028\\u2029\\u00a0\\ufeff"'],
    ['an escaped surrogate pair, either case', '"\\ud83d\\ude00\\uD83D\\uDE00"'],
    ['no normalization', '["e\\u0301","é"]'],
    ['integer bounds', '[9007199254740991,-9007199254740991,0]'],
    ['null, absent and empty differ', '[{"a":null},{},{"a":[]}]'],
    ['depth 16', nested(17)],
    ['a scalar at depth 16', nested(16, '0')],
    ['a text alone', '"a"'],
  ] as const) {
    file.valid(name, 'json.parse', { text });
  }
  for (const [name, text] of [
    ['J3: no value', ''],
    ['J3: white space alone', ' \n'],
    ['J3: text after the value', '{} x'],
    ['J3: two values', '{}{}'],
    ['J1: byte order mark', '\ufeff{}'],
    ['no-break space is no white space', '\u00a0{}'],
    ['J2: escaped high surrogate', '"\\ud800"'],
    ['J2: escaped low surrogate', '"\\udc00"'],
    ['J2: pair in the wrong order', '"\\udc00\\ud800"'],
    ['J2: two high surrogates', '"\\ud800\\ud800"'],
    ['J2: lone surrogate in a name', '{"\\ud800":1}'],
    ['J4: repeated name', '{"a":1,"a":1}'],
    ['J4: repeated name, escaped', '{"a":1,"\\u0061":2}'],
    ['J4: repeated name, escaped pair', '{"😀":1,"\\ud83d\\ude00":2}'],
    ['J4: repeated __proto__', '{"__proto__":1,"__proto__":2}'],
    ['J4: repeated name deep inside', '[{"x":[{"b":1,"c":2,"b":3}]}]'],
    ['J5: depth 17', nested(18)],
    ['J5: a scalar at depth 17', nested(17, '0')],
    ['J6: negative zero', '-0'],
    ['J6: fraction', '1.0'],
    ['J6: exponent', '1e2'],
    ['J6: capital exponent', '1E2'],
    ['J6: leading zero', '01'],
    ['J6: plus sign', '+1'],
    ['J6: hexadecimal', '0x1'],
    ['J6: NaN', 'NaN'],
    ['J7: 2^53', '9007199254740992'],
    ['J7: -2^53', '-9007199254740992'],
    ['J7: a very long integer', '9'.repeat(40)],
    ['RFC 8259: control character in a string', '"\u0001"'],
    ['RFC 8259: line feed in a string', '"\n"'],
    ['RFC 8259: unknown escape', '"\\x41"'],
    ['RFC 8259: short unicode escape', '"\\u12"'],
    ['RFC 8259: unterminated string', '"a'],
    ['RFC 8259: single quotes', "{'a':1}"],
    ['RFC 8259: name without quotes', '{a:1}'],
    ['RFC 8259: trailing comma in an array', '[1,]'],
    ['RFC 8259: trailing comma in an object', '{"a":1,}'],
    ['RFC 8259: unclosed array', '[1'],
    ['RFC 8259: comment', '/**/1'],
    ['RFC 8259: capital literal', 'True'],
  ] as const) {
    file.invalid(name, 'json.parse', { text });
  }
  file.valid('bytes of UTF-8', 'json.parse', { hex: hexOf('"é😀"') });
  for (const [name, hex] of [
    ['J1: stray continuation byte', '228022'],
    ['J1: lead byte alone', '22c322'],
    ['J1: overlong form', '22c0af22'],
    ['J1: encoded surrogate', '22eda08022'],
    ['J1: above U+10FFFF', '22f490808022'],
  ] as const) {
    file.invalid(name, 'json.parse', { hex });
  }
  return file;
}

export function rpcFaultVectors(): VectorFile {
  const file = new VectorFile('Answers to refused JSON-RPC texts', '01 §19; 02 §4.2, §18');
  const request = (params: string, more = '') =>
    `{"jsonrpc":"2.0","id":7,"method":"a.b","params":${params}${more}}`;
  const parse = { rpc: -32700, id: null };
  for (const [name, text, expected] of [
    ['not JSON', '{"id":7', parse],
    ['nothing', '', parse],
    ['leading zero', request('01'), parse],
    ['repeated name inside params', request('{"a":1,"a":2}'), { rpc: -32602, id: 7 }],
    ['fraction inside params', request('{"a":[1.5]}'), { rpc: -32602, id: 7 }],
    ['lone surrogate inside params', request('{"a":"\\ud800"}'), { rpc: -32602, id: 7 }],
    ['params too deep', request(nested(17)), { rpc: -32602, id: 7 }],
    ['params itself at fault', request('-0'), { rpc: -32602, id: 7 }],
    ['fault in an extension member', request('{}', ',"x":1e2'), { rpc: -32600, id: 7 }],
    ['faults inside and outside params', request('-0', ',"x":-0'), { rpc: -32600, id: 7 }],
    ['repeated params', request('{}', ',"params":{}'), { rpc: -32600, id: 7 }],
    ['repeated params, escaped', request('{}', ',"p\\u0061rams":{}'), { rpc: -32600, id: 7 }],
    ['repeated id', request('{}', ',"id":7'), { rpc: -32600, id: null }],
    [
      'id at fault',
      '{"jsonrpc":"2.0","id":1.0,"method":"a.b","params":{}}',
      { rpc: -32600, id: null },
    ],
    [
      'text id echoed',
      '{"jsonrpc":"2.0","id":"a-9","method":"a.b","params":{"x":-0}}',
      { rpc: -32602, id: 'a-9' },
    ],
    [
      'text id too long',
      `{"jsonrpc":"2.0","id":"${'é'.repeat(64)}a","method":"a.b","params":{"x":-0}}`,
      { rpc: -32600, id: null },
    ],
    ['no request, fault inside params', '{"id":7,"params":-0}', { rpc: -32600, id: 7 }],
    ['array root', '[{"id":7,"a":-0}]', { rpc: -32600, id: null }],
  ] as const) {
    file.exact(name, 'rpc.fault', { text }, { ...expected });
  }
  return file;
}

export function base64urlVectors(): VectorFile {
  const file = new VectorFile('Canonical base64url', '01 §2.5');
  for (const text of ['', 'AA', 'AAA', 'AAAA', '_w', '__8', '____', '-_8', 'aA', 'AQIDBAU']) {
    file.valid(`decode "${text}"`, 'base64url.decode', { text });
  }
  for (const text of [
    ...['A', 'AAAAA', 'AB', 'AAB', '_x', '__9', 'AA==', 'AA=', '+w', '/w', 'AA\n', ' AA', 'A A'],
    ...['AA\0', 'AA%3D', 'ＡＡ', 'ÄÄ'],
  ]) {
    file.invalid(`refuse ${JSON.stringify(text)}`, 'base64url.decode', { text });
  }
  for (const [prefix, bytes] of [
    ['', 12],
    ['dev_', 16],
    ['msg_', 16],
    ['grp_', 16],
    ['chan_', 16],
    ['inv_', 16],
    ['sha256:', 32],
    ['', 33],
    ['', 60],
    ['', 64],
  ] as const) {
    const name = `${prefix}${bytes} bytes`;
    const text = encodeBase64url(counting(0xf0, bytes));
    const fixed = (value: string) => ({ text: value, prefix, bytes });
    file.valid(name, 'base64url.fixed', fixed(prefix + text));
    file.invalid(`${name}: one character less`, 'base64url.fixed', fixed(prefix + text.slice(1)));
    file.invalid(`${name}: one more`, 'base64url.fixed', fixed(`${prefix}${text}A`));
    file.invalid(`${name}: line feed after it`, 'base64url.fixed', fixed(`${prefix}${text}\n`));
    if (bytes % 3 !== 0) {
      const padded = `${prefix}${text.slice(0, -1)}B`;
      file.invalid(`${name}: pad bits`, 'base64url.fixed', fixed(padded));
    }
    if (prefix === '') continue;
    const upper = `${prefix.toUpperCase()}${text}`;
    file.invalid(`${name}: prefix in another case`, 'base64url.fixed', fixed(upper));
    file.invalid(`${name}: without its prefix`, 'base64url.fixed', fixed(text));
  }
  return file;
}

export function varintVectors(): VectorFile {
  const file = new VectorFile('Unsigned varint', '01 §5.6');
  for (const hex of [
    ...['00', '01', '7f', '8001', 'ff01', 'ac02', 'ff7f', '808001', '808040'],
    ...['ffffffffffffff0f', '8080808080808010', 'ffffffffffffff7f', '808080808080808001'],
    ...['ffffffffffffffff7f', '7fff'],
  ]) {
    file.valid(hex, 'varint.decode', { hex });
  }
  for (const hex of ['', '80', 'ff', '8080', '8080808080808080']) {
    file.invalid(`incomplete "${hex}"`, 'varint.decode', { hex }, { error: 'incomplete' });
  }
  for (const hex of [
    ...['8000', '8100', 'ff00', '808100', '818080808080808000', '808080808080808080'],
    ...['80808080808080808001', 'ffffffffffffffffff01', 'ffffffffffffffffffff'],
  ]) {
    file.invalid(`invalid ${hex}`, 'varint.decode', { hex }, { error: 'invalid' });
  }
  return file;
}

export function textVectors(): VectorFile {
  const file = new VectorFile('Length and white space of texts', '01 §2.2 P5, §2.4');
  for (const [name, text] of [
    ['empty', ''],
    ['ASCII', 'a b'],
    ['two, three and four bytes', 'é€😀'],
    ['combining', 'e\u0301'],
    [
      'all of the list',
      '\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008' +
        '\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
    ],
    ['next line alone', '\u0085'],
    ['byte order mark is none', '\ufeff'],
    ['zero width space is none', '\u200b'],
    ['mongolian vowel separator is none', '\u180e'],
    ['one other character is enough', ' \u3000x'],
  ] as const) {
    file.valid(name, 'text.measure', { text });
  }
  return file;
}
