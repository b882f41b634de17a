import { badRequest } from '../errors.ts';
import type { JsonObject, JsonValue } from '../json/types.ts';
import type { TSchema } from '../schema.ts';
import type { MethodDefinition } from './definition.ts';

/** The GET form of parameters (chapter 02, section 2.4). Arrays, objects and `null` have none. */

type Scalar = 'string' | 'integer' | 'boolean';

/**
 * Decodes a raw query string into parameters: percent-decoding once, `+` is a plus, each value
 * converted by the type its parameter has. Names the method does not define are ignored. What the
 * values must be is for the method's schema.
 *
 * @param rawQuery what follows the `?`, without it
 * @throws ProtocolError `bad_request`
 * @example
 * decodeQuery(methods['message.timeline.sync'], 'after=41&limit=20'); // { after: 41, limit: 20 }
 */
export function decodeQuery(definition: MethodDefinition, rawQuery: string): JsonObject {
  const params: Record<string, JsonValue> = {};
  const schemas = parameterSchemas(definition);
  for (const field of rawQuery.split('&')) {
    if (field === '') continue;
    const split = field.indexOf('=');
    const name = percentDecode(split < 0 ? field : field.slice(0, split));
    const text = percentDecode(split < 0 ? '' : field.slice(split + 1));
    if (definition.queryRefuses?.includes(name)) {
      throw badRequest(name, 'is not allowed in a query');
    }
    if (!Object.hasOwn(schemas, name)) continue;
    if (Object.hasOwn(params, name)) throw badRequest(name, 'is repeated');
    params[name] = convert(schemas[name] as TSchema, text, name);
  }
  return params;
}

/**
 * Encodes parameters as a query string, without `?`; absent ones are left out.
 *
 * @throws TypeError for a value a query cannot express
 * @example
 * encodeQuery(methods['profile.resolve'], { account }); // 'account=neo%3A860833102%3AN…'
 */
export function encodeQuery(definition: MethodDefinition, params: JsonObject): string {
  const fields: string[] = [];
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue;
    const refused = definition.queryRefuses?.includes(name) === true;
    if (refused || value === null || typeof value === 'object') {
      throw new TypeError(`a query cannot express ${name}`);
    }
    fields.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  }
  return fields.join('&');
}

function parameterSchemas(definition: MethodDefinition): Readonly<Record<string, TSchema>> {
  return (definition.params as { properties?: Record<string, TSchema> }).properties ?? {};
}

function percentDecode(text: string): string {
  // Raw characters outside ASCII are not part of any URI; `decodeURIComponent` lets them through.
  if (!/^[\x21-\x7e]*$/.test(text)) throw badRequest('', 'query is not percent-encoded');
  try {
    return decodeURIComponent(text);
  } catch {
    throw badRequest('', 'malformed percent-encoding');
  }
}

function convert(schema: TSchema, text: string, name: string): JsonValue {
  switch (scalarType(schema)) {
    case 'string':
      return text;
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw badRequest(name, 'expected true or false');
      return text === 'true';
    case 'integer': {
      const value = Number(text);
      if (!/^(?:0|-?[1-9][0-9]*)$/.test(text) || !Number.isSafeInteger(value)) {
        throw badRequest(name, 'expected an integer in shortest decimal form');
      }
      return value;
    }
    default:
      throw badRequest(name, 'cannot stand in a query');
  }
}

/** Returns the one JSON type of a parameter; a union has one if all its members have the same. */
function scalarType(schema: TSchema): Scalar | undefined {
  const { type, anyOf } = schema as { type?: string; anyOf?: TSchema[] };
  if (anyOf !== undefined) {
    const [first, ...rest] = anyOf.map(scalarType);
    return rest.every((other) => other === first) ? first : undefined;
  }
  return type === 'string' || type === 'integer' || type === 'boolean' ? type : undefined;
}
