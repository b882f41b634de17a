/**
 * The builders of schemas that the wire needs, of TypeBox. Its name `Type` has all builders there
 * are, with an engine for computed types: a page that loads the client would load them all.
 */
import { type Static, type TSchema, type TUnsafe, Unsafe } from 'typebox';

export {
  Array,
  Boolean,
  Integer,
  Literal,
  Null,
  Object,
  Optional,
  String,
  Union,
  Unsafe,
} from 'typebox';

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
  return Unsafe({ type: 'object', patternProperties: { [names]: value }, ...options });
}
