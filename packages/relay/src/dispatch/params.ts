import {
  badRequest,
  checkDepth,
  checkGroupParamsInSteps,
  checkNoNull,
  checkSchema,
  type GroupMethodName,
  type MethodDefinition,
  type Network,
} from '@posthouse/protocol';
import {
  factsOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  prepareCanonicalJson,
} from '@posthouse/protocol/json';
import type { Steps } from './slices.ts';

/** What a catalogue entry, of clients or of relays, says about parameters. */
export type ParamsDefinition = Pick<
  MethodDefinition,
  'params' | 'depth' | 'memberDepth' | 'nullable' | 'nullableUnknown'
>;

/**
 * Checks decoded parameters against a method of the catalogue: an object, no `$context`, which is
 * never sent (01 N6, 06 §8), no `null` unless the method allows it (01 J9), no value too deep for
 * the responses that will contain it (01 J5), and the schema.
 *
 * @throws ProtocolError `bad_request`
 */
export function checkParams(
  definition: ParamsDefinition,
  params: JsonValue,
): asserts params is JsonObject {
  if (!isJsonObject(params)) throw badRequest('', 'parameters are not an object');
  if (Object.hasOwn(params, '$context')) throw badRequest('$context', 'is never transmitted');
  if (factsOf(params)?.hasNull !== false) checkNulls(definition, params);
  if (definition.depth !== undefined) checkDepth(params, definition.depth);
  for (const name in definition.memberDepth) {
    const member = params[name];
    if (member !== undefined) checkDepth(member, definition.memberDepth[name] as number);
  }
  checkSchema(definition.params, params);
}

/**
 * Checks large parameters as {@link checkParams} does, and does in steps what the handler would do at
 * once: it formats what may be signed, and checks long lists.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 */
export function* checkLargeParams(
  network: Network,
  definition: ParamsDefinition & Partial<MethodDefinition>,
  params: JsonValue,
): Steps<void> {
  if (definition.handlerChecksParams !== true) checkParams(definition, params);
  yield;
  if (!isJsonObject(params)) return;
  if (definition.session === 'none') {
    const { properties = {} } = definition.params as { properties?: Record<string, unknown> };
    for (const name of Object.keys(properties)) yield* prepareCanonicalJson(params[name]);
  } else {
    yield* prepareCanonicalJson(params);
  }
  if (definition.capability === 'group.host.v1') {
    yield* checkGroupParamsInSteps(network, definition.name as GroupMethodName, params);
  }
}

function checkNulls(definition: ParamsDefinition, params: JsonObject): void {
  if (definition.nullable === undefined && definition.nullableUnknown !== true) {
    checkNoNull(params);
    return;
  }
  for (const name of Object.keys(params)) {
    const value = params[name];
    if (value !== null || !isNullable(definition, name)) checkNoNull(value, name);
  }
}

function isNullable(definition: ParamsDefinition, name: string): boolean {
  if (definition.nullable?.includes(name)) return true;
  const { properties = {} } = definition.params as { properties?: Record<string, unknown> };
  return definition.nullableUnknown === true && !Object.hasOwn(properties, name);
}
