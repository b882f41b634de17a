/** Generators of JSON for property tests, and a dumb judge of what the strict parser accepts. */
import fc from 'fast-check';

/** Names that collide easily, one of them a trap for assignments. */
const name = fc.oneof(
  fc.constantFrom('a', 'b', '__proto__', 'constructor', '1', '10', '', 'é', '😀', '\ufb33', '\r'),
  fc.string({ unit: 'binary', maxLength: 4 }),
);

/** Any protocol JSON value: safe integers, well-formed strings, no `-0`. */
export const protocolJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 8, depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, false, 0, -1, 2 ** 53 - 1, -(2 ** 53 - 1)),
    fc.maxSafeInteger().map((value) => value + 0),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .uniqueArray(fc.tuple(name, tie('value')), { maxLength: 4, selector: ([key]) => key })
      .map((members) => objectOf(members)),
  ),
})).value;

/** An object with exactly these members, `__proto__` an ordinary one. */
export function objectOf(members: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(members);
}

const space = fc.constantFrom('', '', '', ' ', '\n', '\t \r\n');

/** One character of a string literal as it may be written. */
const stringPart = fc.oneof(
  { arbitrary: fc.constantFrom('a', 'b', 'é', '😀', '\u2028', '\u007f', '/'), weight: 6 },
  {
    arbitrary: fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0061'),
    weight: 4,
  },
  { arbitrary: fc.constantFrom('\\ud83d\\ude00', '\\uD83D\\uDE00', '\\u0000'), weight: 2 },
);
const brokenPart = fc.constantFrom(
  ...['\\ud83d', '\\ude00', '\ud83d', '\ude00', '\ud83d\\ude00', '\\ud83d\ude00'],
  ...['\\ude00\\ud83d', '\u0000', '\u001f', '\n', '\\x', '\\u12', '\\u12g4', '\\', '"'],
);
const literal = fc
  .array(fc.oneof({ arbitrary: stringPart, weight: 60 }, { arbitrary: brokenPart, weight: 1 }), {
    maxLength: 4,
  })
  .map((parts) => `"${parts.join('')}"`);
const nameLiteral = fc.oneof(
  fc.constantFrom('"a"', '"\\u0061"', '"b"', '"c"', '"__proto__"', '"_\\u005fproto__"', '""'),
  literal,
);
const number = fc.oneof(
  { arbitrary: fc.maxSafeInteger().map(String), weight: 8 },
  { arbitrary: fc.constantFrom('0', '-1', '9007199254740991', '-9007199254740991'), weight: 4 },
  {
    arbitrary: fc.constantFrom(
      ...['-0', '1.0', '1e2', '1E+2', '0.5', '-0.0', '9007199254740992', '-9007199254740992'],
      ...['1e400', '00', '01', '-01', '-', '+1', '.5', '1.', '1e', '0x1', 'NaN', 'Infinity'],
      ...['9007199254740993000000000000000000'],
    ),
    weight: 1,
  },
);

/** Texts near JSON: mostly valid, often breaking a narrower rule, sometimes the grammar. */
export const looseJsonText = fc.letrec<{ value: string }>((tie) => {
  const inSpace = (text: fc.Arbitrary<string>) =>
    fc.tuple(space, text, space).map((parts) => parts.join(''));
  return {
    value: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      fc.constantFrom('true', 'false', 'null'),
      number,
      literal,
      fc.array(inSpace(tie('value')), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
      fc
        .array(fc.tuple(inSpace(nameLiteral), inSpace(tie('value'))), { maxLength: 3 })
        .map((members) => `{${members.map((member) => member.join(':')).join(',')}}`),
      fc
        .tuple(fc.integer({ min: 1, max: 17 }), tie('value'))
        .map(([levels, value]) => '['.repeat(levels) + value + ']'.repeat(levels)),
    ),
  };
}).value;

/** A text with one piece of it replaced: mostly no JSON any more. */
export const mutatedJsonText = fc
  .tuple(
    looseJsonText,
    fc.nat(),
    fc.integer({ min: 0, max: 2 }),
    fc.constantFrom(
      '',
      ',',
      ':',
      '"',
      '\\',
      '{',
      '}',
      ']',
      '0',
      '-',
      '.',
      'e',
      '\ufeff',
      '\0',
      'x',
    ),
  )
  .map(([text, at, length, piece]) => {
    const start = at % (text.length + 1);
    return text.slice(0, start) + piece + text.slice(start + length);
  });

/**
 * What the rules J1 to J7 of 01 section 2.1 make of a text, found slowly and in another way than
 * the parser does: by the platform's parser and by looking for each fault on its own.
 */
export function judge(text: string): { readonly accepted: boolean; readonly value?: unknown } {
  if (!isJson(text)) return { accepted: false };
  const value = platformValue(text);
  const outside = text.replaceAll(strings, 's');
  const members = outside.split(':').length - 1;
  const numbers = outside.match(/-?[0-9][0-9.eE+-]*/g) ?? [];
  const accepted =
    text.isWellFormed() &&
    wellFormed(value) &&
    countMembers(value) === members &&
    depth(value) <= 16 &&
    numbers.every(isSafeIntegerText);
  return accepted ? { accepted, value } : { accepted };
}

/**
 * The value of a JSON text by the platform's parser, which gets to see no escapes in names: V8 14
 * misreads an escaped name where it has seen an object of the same shape whose next name was the
 * beginning of the escape (`{"\\\\":1}`, then `{"\\u0061":1}`).
 */
function platformValue(text: string): unknown {
  const plain = text.replaceAll(strings, (found, at: number) => {
    const rest = text.slice(at + found.length).trimStart();
    return rest.startsWith(':') ? encodeName(found) : found;
  });
  const decode = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(decode);
    if (typeof value !== 'object' || value === null) return value;
    return objectOf(
      Object.entries(value).map(([key, member]) => [decodeName(key), decode(member)]),
    );
  };
  return decode(JSON.parse(plain));
}

/** The literal of a name that spells its code units in decimal. */
function encodeName(literalText: string): string {
  const text = JSON.parse(literalText) as string;
  return `"${Array.from({ length: text.length }, (_, at) => `${text.charCodeAt(at)};`).join('')}"`;
}

function decodeName(key: string): string {
  const units = key.split(';').slice(0, -1);
  return units.map((unit) => String.fromCharCode(Number(unit))).join('');
}

/** Every string literal of a JSON text, from the left. */
const strings = /"(?:[^"\\]|\\.)*"/g;

/** Whether a text is JSON by RFC 8259, as the platform sees it. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isSafeIntegerText(text: string): boolean {
  if (!/^(?:0|-?[1-9][0-9]*)$/.test(text)) return false;
  const value = BigInt(text);
  return value < 2n ** 53n && value > -(2n ** 53n);
}

function children(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

function depth(value: unknown): number {
  return Math.max(0, ...children(value).map((child) => depth(child) + 1));
}

/** Repeated names are lost on parsing, so fewer members than colons tell of them. */
function countMembers(value: unknown): number {
  const own = Array.isArray(value) ? 0 : children(value).length;
  return children(value).reduce<number>((sum, child) => sum + countMembers(child), own);
}

function wellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.keys(value).every((key) => key.isWellFormed()) && children(value).every(wellFormed);
}
