/** The check of schemas does what TypeBox does, the library that their types are of. */
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import * as protocol from '../src/index.ts';
import { schemaCheck } from '../src/schema-check.ts';

const { Type, methods, notifications } = protocol;

interface Node {
  readonly type?: string;
  readonly properties?: Record<string, Node>;
  readonly required?: readonly string[];
  readonly patternProperties?: Record<string, Node>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly pattern?: string;
  readonly const?: unknown;
}

const isSchema = (value: unknown): value is protocol.TSchema =>
  typeof value === 'object' && value !== null && ('type' in value || 'anyOf' in value);

const schemas = Object.entries({
  ...protocol,
  ...Object.fromEntries(
    [...Object.entries(methods), ...Object.entries(notifications)].flatMap(([name, one]) =>
      Object.entries(one).map(([part, value]) => [`${name} ${part}`, value]),
    ),
  ),
}).flatMap(([name, value]: [string, unknown]) => (isSchema(value) ? [[name, value] as const] : []));

const faults = fc.constantFrom<unknown>(
  ...[null, true, 0, -1, 1.5, 2 ** 53, Number.NaN, '', 'a', [], ['a'], {}, { a: 1 }],
);

/** Values of a schema, with faults here and there. */
function values(node: Node): fc.Arbitrary<unknown> {
  const good = sound(node);
  return fc.oneof({ weight: 30, arbitrary: good }, { weight: 1, arbitrary: faults });
}

function sound(node: Node): fc.Arbitrary<unknown> {
  if (node.anyOf !== undefined) return fc.oneof(...node.anyOf.map(values));
  if ('const' in node) return fc.constant(node.const);
  switch (node.type) {
    case 'object': {
      const { properties = {}, patternProperties = {} } = node;
      const members = Object.entries(properties).map(([name, part]) => [name, values(part)]);
      const own = fc.record(Object.fromEntries(members), {
        requiredKeys: (node.required ?? []) as never[],
      });
      const [named] = Object.entries(patternProperties);
      const more = named
        ? fc.dictionary(
            fc.oneof(
              { weight: 9, arbitrary: texts(named[0]) },
              fc.constantFrom('a/b', '~', 'a\nb'),
            ),
            values(named[1]),
            { maxKeys: 3 },
          )
        : fc.constantFrom({}, {}, { unknown: 1 });
      const lacking = fc.oneof({ weight: 20, arbitrary: fc.constant(undefined) }, fc.nat(20));
      return fc.tuple(own, more, lacking).map(([one, other, without]) => {
        const all = Object.entries({ ...one, ...other });
        return Object.fromEntries(all.filter((_, index) => index !== without));
      });
    }
    case 'array':
      return fc.array(values(node.items ?? {}), { maxLength: 3 });
    case 'string':
      return texts(node.pattern);
    case 'integer':
      // Mostly within the usual bounds: else an object of many numbers would hardly ever pass.
      return fc.oneof(
        { weight: 8, arbitrary: fc.maxSafeNat() },
        { weight: 1, arbitrary: fc.nat(10) },
        { weight: 1, arbitrary: fc.maxSafeInteger() },
      );
    case 'boolean':
      return fc.boolean();
    default:
      return faults;
  }
}

const texts = (pattern?: string) =>
  pattern === undefined ? fc.string() : fc.stringMatching(new RegExp(pattern));

describe.each(schemas)('01 §2: %s', (_name, schema) => {
  test('values pass, and have the same first fault, as with TypeBox', () => {
    const [compiled, check] = [Compile(schema), schemaCheck(schema)];
    let passed = 0;
    fc.assert(
      fc.property(values(schema as Node), (value) => {
        const [error] = compiled.Check(value) ? [] : compiled.Errors(value);
        if (error === undefined) passed += 1;
        const at = error?.instancePath.replace(/^\//, '').replaceAll('/', '.');
        const fault = check(value);
        expect(fault && { ...fault, at: escaped(fault.at) }).toEqual(
          error && { at, message: error.message },
        );
      }),
      { numRuns: 60, seed: 1 },
    );
    expect(passed).toBeGreaterThan(0);
  });
});

/** Names of members as TypeBox has them in its paths. */
const escaped = (at: string) => at.replaceAll('~', '~0').replaceAll('/', '~1');

test('01 §2: a schema with a keyword that is not checked is refused', () => {
  const unchecked = Type.Array(Type.String(), { uniqueItems: true });
  expect(() => schemaCheck(unchecked)).toThrow('schema keyword uniqueItems is not checked');
  const inherited = Type.Object({ toString: Type.Optional(Type.String()) });
  expect(() => schemaCheck(inherited)).toThrow('cannot name a member toString');
});
