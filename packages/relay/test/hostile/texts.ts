/** Hostile texts: JSON of a loose grammar with faults in it, then changed byte by byte. */
import type { Chance } from './chance.ts';

const spaces = ['', '', '', '', ' ', '\n', '\t \r\n', '\u00a0', '\v'];
const integers = [
  ...['0', '1', '-1', '7', '42', '2147483648', '1750000000', '9007199254740991'],
  ...['-9007199254740991', '9007199254740990', '4294967296'],
];
/** JSON that 01 §2.1 refuses, and what is no JSON either. */
const wrongNumbers = {
  rule: [
    ...['-0', '1.0', '1e2', '1E+2', '0.5', '-0.0', '0e0', '9007199254740992', '-9007199254740992'],
    ...['9007199254740993', '1e400', '-1e-400', '9'.repeat(400), `0.${'0'.repeat(400)}`],
  ],
  syntax: [
    ...['00', '01', '-01', '-', '+1', '.5', '1.', '1e', '1e+', '0x1', 'NaN', 'Infinity', '1_000'],
    ...['١', '1n', '--1', '1.e1'],
  ],
};
const rightParts = [
  ...[
    'a',
    'b',
    'Z',
    '0',
    ' ',
    '/',
    'é',
    '€',
    '😀',
    '\u2028',
    '\u2029',
    '\u007f',
    '\ufeff',
    '\uffff',
  ],
  ...['\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0061', '\\u0000', '\\u001F'],
  ...['\\ud83d\\ude00', '\\uD83D\\uDE00', '\\uFFFE', '\\u2028', '{', '[', '"'.replace('"', '\\"')],
];
const wrongParts = {
  rule: [
    ...['\\ud83d', '\\ude00', '\\ude00\\ud83d', '\\ud83d\\ud83d\\ude00', '\\ud83dx', '\\ud83d\\n'],
    ...['\\ud83d\\u0041', '\\uDBFF', '\\uDC00', '\\ud83d\\ude00\\ude00'],
  ],
  syntax: [
    ...['\u0000', '\u001f', '\n', '\t', '\\x41', '\\u12', '\\u12g4', '\\U0061', '\\', '\\u', '"'],
    ...['\\ud83d\\u', '\\ud83d\\ude0', "\\'", '\\0', '\\u{61}'],
  ],
};
const names = [
  ...['a', 'b', 'id', 'method', 'params', 'jsonrpc', 'result', 'error', '$type', '$context', ''],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'length', '0', '1'],
  ...[
    'then',
    'toJSON',
    'valueOf',
    '-1',
    '1e3',
    'é',
    '😀',
    '\\u0061',
    '_\\u005fproto__',
    '\\u0069d',
  ],
];
const requests = [
  '{"jsonrpc":"2.0","id":1,"method":"relay.info","params":{}}',
  '{"jsonrpc":"2.0","id":"a","method":"auth.challenge","params":{"account":"x"}}',
  '{"jsonrpc":"2.0","id":-7,"method":"x","params":[{"a":{"b":[1,2,{"c":null}]}}],"more":true}',
  '{"jsonrpc":"2.0","method":"x"}',
  '[{"jsonrpc":"2.0","id":1,"method":"x"}]',
];
/** Bytes that no UTF-8 text has, or that often confuse decoders. */
const wrongBytes = [
  ...[
    [0x80],
    [0xc0, 0x80],
    [0xc1, 0xbf],
    [0xe0, 0x80, 0x80],
    [0xed, 0xa0, 0x80],
    [0xed, 0xbf, 0xbf],
  ],
  ...[[0xf0, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xfe], [0xff]],
  ...[[0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xef, 0xbb, 0xbf], [0xff, 0xfe], [0xc2, 0x85], [0x00]],
  ...[
    [0xe2, 0x80, 0xa8],
    [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
    [0xc2],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
  ],
];
const marks = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  'null',
  'true',
  '0',
  '-',
  '.',
  'e',
  '/*x*/',
  "'",
];

/** Makes a text with a given chance of faults in its parts. */
class Grammar {
  readonly #chance: Chance;
  /** A fault once in so many parts; 0 for none. */
  readonly #faultOnce: number;
  /** Faults of the grammar, or only of the narrower rules. */
  readonly #faults: 'rule' | 'syntax';
  #size = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
    this.#faultOnce = chance.pick([0, 6, 20, 60]);
    this.#faults = chance.pick(['rule', 'rule', 'syntax']);
  }

  text(): string {
    const chance = this.#chance;
    const body = chance.once(3) ? this.#request() : this.#value(0);
    const deep = chance.once(12) ? chance.pick([1, 10, 15, 16, 17, 18, 40, 3_000]) : 0;
    const [open, close] = chance.pick([
      ['[', ']'],
      ['{"a":', '}'],
      ['[[', ']]'],
    ] as const);
    return this.#space() + open.repeat(deep) + body + close.repeat(deep) + this.#space();
  }

  #isFault(): boolean {
    return this.#faultOnce > 0 && this.#chance.once(this.#faultOnce);
  }

  #isSyntaxFault(): boolean {
    return this.#faults === 'syntax' && this.#isFault();
  }

  #space(): string {
    return this.#chance.pick(this.#isSyntaxFault() ? spaces : spaces.slice(0, 7));
  }

  #request(): string {
    const chance = this.#chance;
    const members = [
      ['jsonrpc', chance.once(12) ? this.#value(1) : '"2.0"'],
      [
        'id',
        chance.once(4) ? this.#value(1) : chance.pick(['1', '"x"', '-5', `"${'i'.repeat(128)}"`]),
      ],
      ['method', chance.once(12) ? this.#value(1) : '"relay.info"'],
      ['params', this.#value(1)],
      [chance.pick(names), this.#value(1)],
    ];
    const kept = members.filter(() => !chance.once(8));
    if (chance.once(8) && kept.length > 0) kept.push(chance.pick(kept));
    return `{${kept.map(([name, value]) => `"${name}":${value}`).join(',')}}`;
  }

  #value(depth: number): string {
    const chance = this.#chance;
    this.#size += 1;
    const kind = depth > 6 || this.#size > 60 ? chance.below(4) : chance.below(7);
    if (kind === 0)
      return chance.pick([
        'true',
        'false',
        'null',
        ...(this.#isSyntaxFault() ? ['nul', 'True'] : []),
      ]);
    if (kind === 1) return chance.pick(this.#isFault() ? wrongNumbers[this.#faults] : integers);
    if (kind === 2) return String(chance.below(2 ** 32) * chance.pick([1, 1, 1_048_575]));
    if (kind === 3) return this.#string();
    const items = Array.from({ length: chance.below(5) }, () => {
      const value = this.#space() + this.#value(depth + 1) + this.#space();
      return kind === 4 ? value : `${this.#space()}${this.#name()}${this.#space()}:${value}`;
    });
    if (this.#isFault() && items.length > 0) items.push(chance.pick(items));
    const between = this.#isSyntaxFault() ? ',,' : ',';
    const joined = items.join(between) + (this.#isSyntaxFault() ? ',' : '');
    return kind === 4 ? `[${joined}]` : `{${joined}}`;
  }

  #name(): string {
    const chance = this.#chance;
    if (chance.once(400)) return `"${'k'.repeat(1 + chance.below(70_000))}"`;
    return chance.once(3) ? this.#string() : `"${chance.pick(names)}"`;
  }

  #string(): string {
    const chance = this.#chance;
    const parts = Array.from({ length: chance.below(6) }, () =>
      chance.pick(this.#isFault() ? wrongParts[this.#faults] : rightParts),
    );
    return `"${parts.join('')}"`;
  }
}

const noBytes = Buffer.alloc(0);

/** Replaces a part of the bytes by other bytes. */
function splice(
  bytes: Buffer,
  at: number,
  { remove = 0, add = noBytes }: { readonly remove?: number; readonly add?: Buffer },
): Buffer {
  return Buffer.concat([bytes.subarray(0, at), add, bytes.subarray(at + remove)]);
}

const changes: readonly ((bytes: Buffer, chance: Chance) => Buffer)[] = [
  (bytes, chance) => splice(bytes, chance.below(bytes.length), { remove: 1 + chance.below(4) }),
  (bytes, chance) => {
    const changed = Buffer.from(bytes);
    if (changed.length > 0) changed[chance.below(changed.length)] = chance.below(256);
    return changed;
  },
  (bytes, chance) => {
    const changed = Buffer.from(bytes);
    const at = chance.below(changed.length);
    if (changed.length > 0) changed[at] = (changed[at] as number) ^ (1 << chance.below(8));
    return changed;
  },
  (bytes, chance) =>
    splice(bytes, chance.below(bytes.length + 1), { add: Buffer.from(chance.pick(wrongBytes)) }),
  (bytes, chance) =>
    splice(bytes, chance.below(bytes.length + 1), { add: Buffer.from(chance.pick(marks)) }),
  (bytes, chance) => {
    const from = chance.below(bytes.length);
    const piece = bytes.subarray(from, from + chance.below(20));
    return splice(bytes, chance.below(bytes.length + 1), { add: piece });
  },
  (bytes, chance) => bytes.subarray(0, chance.below(bytes.length + 1)),
];

/** Changes bytes in one place. */
export function changeBytes(bytes: Buffer, chance: Chance): Buffer {
  return chance.pick(changes)(bytes, chance);
}

/** Makes one hostile text. */
export function hostileText(chance: Chance): Buffer {
  const text = chance.once(4) ? chance.pick(requests) : new Grammar(chance).text();
  let bytes: Buffer = Buffer.from(text);
  const count = chance.pick([0, 0, 0, 0, 1, 1, 2, 5]);
  for (let done = 0; done < count; done += 1) bytes = changeBytes(bytes, chance);
  return bytes;
}
