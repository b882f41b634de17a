/** What a program remembers of a text does not keep the text in memory. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import {
  decodeUtf8,
  isJsonObject,
  type JsonValue,
  parseJson,
  parseJsonInSteps,
} from '../../src/json/index.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const count = 200;
const megabyte = 1_048_576;

/** Returns by how many bytes the heap grew with what was kept of so many texts. */
function growth(textOf: (index: number) => string, keep: (value: JsonValue) => unknown): number {
  const kept: unknown[] = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < count; index += 1) {
    kept.push(keep(parseJson(decodeUtf8(Buffer.from(textOf(index))))));
  }
  collect();
  const after = process.memoryUsage().heapUsed;
  expect(kept).toHaveLength(count);
  return after - before;
}

const account = (index: number) => `account-${String(index).padStart(32, '0')}`;
const space = ' '.repeat(60_000);
const to = (value: JsonValue) => isJsonObject(value) && value.to;

test.each<[string, (index: number) => string]>([
  ['ordinary', (index) => `{${space}"to":"${account(index)}"}`],
  ['with escapes', (index) => `{${space}"to":"\\u0061b${account(index)}"}`],
  ['beyond Latin-1', (index) => `{"a":"ф",${space}"to":"${account(index)}"}`],
])(
  '02 §18: an identifier that is kept of a text of 60,000 bytes takes its own length (%s)',
  (_, textOf) => {
    expect(growth(textOf, to)).toBeLessThan(megabyte);
  },
);

test('02 §18: a string that is most of a text is not copied', () => {
  const text = 'a'.repeat(40_000);
  const grown = growth(
    (index) => `{"to":"${index}${text}"}`,
    (value) => value,
  );
  expect(grown).toBeLessThan(count * 50_000);
});

/** The value `to`, of so many units, of a text that is as long as another. */
const stringOf = (units: number, length: number) => (index: number) => {
  const value = String(index).padEnd(units, 'a');
  const rest = length - `{"to":"${value}"}`.length;
  return `{${' '.repeat(rest)}"to":"${value}"}`;
};
const largeText = 60_000;

// V8 copies strings of 12 units and fewer itself.
test.each([13, 256])(
  '02 §18: a string of %i units does not keep a large text in memory',
  (units) => {
    expect(growth(stringOf(units, largeText), to)).toBeLessThan(megabyte);
  },
);

test('02 §18: a string of 257 units is not copied', () => {
  expect(growth(stringOf(257, largeText), to)).toBeGreaterThan(count * 50_000);
});

test('02 §18: a string is copied from a text of 8,193 units, and not from one of 8,192', () => {
  expect(growth(stringOf(13, 8_193), to)).toBeLessThan(megabyte / 2);
  expect(growth(stringOf(13, 8_192), to)).toBeGreaterThan(megabyte);
});

describe('02 §18: a text of 1 MiB in one string is kept in one piece', () => {
  const escapes = '\\na'.repeat(Math.floor(megabyte / 3));
  const pairs = '😀'.repeat(megabyte / 4);
  /** Takes all steps. */
  const inSteps = (text: string) => {
    const steps = parseJsonInSteps(text);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    return step.value;
  };

  test.each([
    ['of escapes', escapes, parseJson],
    ['of escapes, in steps', escapes, inSteps],
    ['of pairs of surrogates', pairs, parseJson],
    ['of pairs of surrogates, in steps', pairs, inSteps],
  ])('%s', (_, string, parse) => {
    const texts = [`"${string}"`, `["${string}"]`, `{"${string}":1}`].map((text) =>
      Buffer.from(text),
    );
    const kept: JsonValue[] = [];
    const { heap, external } = used();
    for (const text of texts) kept.push(parse(decodeUtf8(text)));
    const grown = { heap: used().heap - heap, external: used().external - external };
    expect(kept).toHaveLength(texts.length);
    // Made of parts, a string would take 20 times as much.
    expect(grown.heap + grown.external).toBeLessThan(1.5 * texts.length * megabyte);
  });
});

/** Returns the bytes of memory that are used after a collection. */
function used() {
  collect();
  const { heapUsed: heap, external } = process.memoryUsage();
  return { heap, external };
}
