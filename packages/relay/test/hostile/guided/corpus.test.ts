/** The inputs that `npm run test:guided` begins with and has found, as vectors. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { targets } from './targets.ts';

const file = new URL('./corpus.json', import.meta.url);
const corpus = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string[]>;

test('the corpus has inputs of every parser, and of no other', () => {
  expect(Object.keys(corpus).sort()).toEqual(Object.keys(targets).sort());
});

for (const [name, target] of Object.entries(targets)) {
  test(`01 §2, 02 §2, 07 §B, §C: ${name} refuses or reads back each input of the corpus`, () => {
    const failures: string[] = [];
    for (const input of corpus[name] ?? []) {
      try {
        target(Buffer.from(input, 'base64'));
      } catch (error) {
        failures.push(`${input}: ${(error as Error).message}`);
      }
    }
    expect(failures).toEqual([]);
  });
}
