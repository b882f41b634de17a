/** The builders make the schemas that TypeBox makes, whose static types they have (decision 0033). */
import { Type as TypeBox } from 'typebox';
import { expect, test } from 'vitest';
import { Type } from '../src/index.ts';

type Builders = Omit<typeof Type, 'Members'>;

const schemas: readonly [string, (builders: Builders) => object][] = [
  ['plain types', (b) => b.Union([b.String(), b.Integer(), b.Boolean(), b.Null()])],
  ['options', (b) => b.Array(b.String({ pattern: '^a$', minLength: 1 }), { maxItems: 2 })],
  ['literals', (b) => b.Union([b.Literal('a'), b.Literal(1), b.Literal(true)], { title: 'x' })],
  ['no union', (b) => b.Union([])],
  ['unchecked types', (b) => b.Optional(b.Unsafe({ type: 'object' }))],
  [
    'members, required and optional',
    (b) =>
      b.Object(
        { b: b.Optional(b.Integer({ minimum: 0 })), a: b.Null({ description: 'none' }) },
        { additionalProperties: false },
      ),
  ],
  ['only optional members', (b) => b.Object({ a: b.Optional(b.Array(b.Literal(2))) })],
  ['an optional optional member', (b) => b.Object({ a: b.Optional(b.Optional(b.String())) })],
];

test.each(schemas)('01 §2: %s: the schema has the keywords of TypeBox, in its order', (_, make) => {
  expect(JSON.stringify(make(Type))).toBe(JSON.stringify(make(TypeBox as Builders)));
});

test('01 §2: a schema stays required after an optional one was made of it', () => {
  const text = Type.String();
  Type.Optional(text);
  expect(Type.Object({ text })).toMatchObject({ required: ['text'] });
});
