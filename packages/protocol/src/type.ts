/**
 * The builders of schemas. Types, names and results are those of TypeBox, whose static types every
 * shape of the wire has; only the builders that the wire needs, without TypeBox's engine of
 * computed types, so that a page which loads the client does not load that engine (decision 0033).
 */
import type { Static, TSchema, TUnsafe, Type } from 'typebox';

/** Marks an optional member for {@link object}: no keyword, so JSON and checks do not have it. */
const optionalMark = '~optional';

const { defineProperty, entries, hasOwn } = Object;

/** A builder of schemas that consist of a type and options. */
const plain =
  (type: string) =>
  (options: object = {}) =>
    ({ type, ...options }) as never;

const object: typeof Type.Object = (
  properties: Readonly<Record<string, TSchema>>,
  options: object = {},
) => {
  const required = entries(properties).flatMap(([name, schema]) =>
    hasOwn(schema, optionalMark) ? [] : [name],
  );
  const names = required.length === 0 ? {} : { required };
  return { type: 'object', ...names, properties, ...options } as never;
};

const array: typeof Type.Array = (items: TSchema, options: object = {}) =>
  ({ type: 'array', items, ...options }) as never;
const boolean: typeof Type.Boolean = plain('boolean');
const integer: typeof Type.Integer = plain('integer');
const literal: typeof Type.Literal = (value: unknown, options: object = {}) =>
  ({ type: typeof value, const: value, ...options }) as never;
const nothing: typeof Type.Null = plain('null');
const optional: typeof Type.Optional = (schema: TSchema) =>
  defineProperty({ ...schema }, optionalMark, { value: true }) as never;
const text: typeof Type.String = plain('string');
const union: typeof Type.Union = (anyOf: readonly TSchema[], options: object = {}) =>
  ({ anyOf, ...options }) as never;
const unsafe: typeof Type.Unsafe = (schema: TSchema) => schema as never;

export {
  array as Array,
  boolean as Boolean,
  integer as Integer,
  literal as Literal,
  nothing as Null,
  object as Object,
  optional as Optional,
  text as String,
  union as Union,
  unsafe as Unsafe,
};

/**
 * Makes the schema of an object whose members all have one schema, under names that match a pattern.
 * Members of other names are of any value, or refused with `additionalProperties: false`.
 *
 * @param names regular expression of the names, anchored
 * @example
 * const Ages = Type.Members('^[a-z]+$', Type.Integer({ minimum: 0 }));
 */
export function Members<S extends TSchema>(
  names: string,
  value: S,
  options: { readonly minProperties?: number; readonly additionalProperties?: false } = {},
): TUnsafe<Record<string, Static<S>>> {
  return unsafe({ type: 'object', patternProperties: { [names]: value }, ...options });
}
