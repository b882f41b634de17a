import { describe, expect, test } from 'vitest';
import { operations, run } from '../../scripts/vectors/operations.ts';
import { Network } from '../../src/index.ts';
import { type JsonObject, parseJson } from '../../src/json/index.ts';
import { implementations } from '../crypto/implementations.ts';
import { ownVectorTexts } from './files.ts';

interface VectorCase {
  readonly name: string;
  readonly network_context?: string;
  readonly operation: string;
  readonly input: JsonObject;
  readonly expected: JsonObject;
}

interface VectorFile {
  readonly title: string;
  readonly source: string;
  readonly service_word: string;
  readonly network_context: string;
  readonly cases: readonly VectorCase[];
}

const files = [...ownVectorTexts()].map(
  ([name, text]) => [name, parseJson(text) as unknown as VectorFile] as const,
);

describe('our vectors', () => {
  test('are there, and use every operation', () => {
    const used = files.flatMap(([, { cases }]) => cases.map(({ operation }) => operation));
    expect([...new Set(used)].sort()).toEqual(Object.keys(operations).sort());
  });

  test('no two cases of a file have one name', () => {
    for (const [name, { cases }] of files) {
      expect([name, new Set(cases.map((one) => one.name)).size]).toEqual([name, cases.length]);
    }
  });
});

describe.each(implementations)('our vectors on %s', (_name, primitives) => {
  for (const [name, { title, source, service_word: word, ...file }] of files) {
    describe(`${name}: ${title} (${source})`, () => {
      for (const { name: title, network_context, operation, input, expected } of file.cases) {
        test(title, () => {
          const context = network_context ?? file.network_context;
          const network = new Network({ context, word, primitives });
          expect(run(operation, network, input)).toEqual(expected);
        });
      }
    });
  }
});
