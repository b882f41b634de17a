/** What a program remembers of a text does not keep the text in memory. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { decodeUtf8, isJsonObject, type JsonValue, parseJson } from '../../src/json/index.ts';

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
