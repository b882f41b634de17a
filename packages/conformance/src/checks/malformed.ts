/** Every way to break the form of a valid call, one at a time. */
import { isJsonObject, type JsonObject, type JsonValue } from '@posthouse/protocol';

/** A broken copy, and what is wrong with it. */
export type Malformed = readonly [what: string, value: JsonObject];

/** Members whose text is free: no character is wrong in them. */
const free = new Set(['name', 'description']);

/**
 * Copies of an object with one member omitted, `null`, of another type, or not canonical; with
 * `$context`, or `null` in an unknown member, at every depth (01 §2, 05 §0, §4.4).
 */
export function* malformed(object: JsonObject, path = ''): Generator<Malformed> {
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const at = path === '' ? name : `${path}.${name}`;
    const { [name]: _, ...others } = object;
    yield [`${at} omitted`, others];
    for (const [what, broken] of brokenValues(name, value, at)) {
      yield [what, { ...object, [name]: broken }];
    }
  }
  const at = path === '' ? 'the object' : path;
  // Parameters that are no protocol object may have any name at their root (01 K2).
  if (path !== '' || Object.hasOwn(object, '$type')) {
    yield [`$context in ${at}`, { ...object, $context: 'c' }];
  }
  yield [`null in an unknown member of ${at}`, { ...object, future: { deep: [null] } }];
}

/** What a query can express of it: members omitted, or texts that are not canonical (02 §2.4). */
export function* malformedQueries(params: JsonObject): Generator<Malformed> {
  for (const [name, value] of Object.entries(params)) {
    const { [name]: _, ...others } = params;
    yield [`${name} omitted`, others];
    yield [`${name} empty`, { ...params, [name]: '' }];
    yield [`${name} padded`, { ...params, [name]: `${String(value)}=` }];
  }
}

function* brokenValues(
  name: string,
  value: JsonValue,
  at: string,
): Generator<readonly [string, JsonValue]> {
  yield [`${at} null`, null];
  if (typeof value === 'string') {
    yield [`${at} a number`, 1];
    if (free.has(name)) return;
    yield [`${at} padded`, `${value}=`];
    yield [`${at} with a space`, ` ${value}`];
    // Any length is right for the text of a message, and for nothing else.
    if (at !== 'payload.ciphertext') yield [`${at} cut short`, value.slice(0, -1)];
  } else if (typeof value === 'number') {
    yield [`${at} a text`, String(value)];
    yield [`${at} a fraction`, value + 0.5];
    // An instant may be any integer.
    if (!name.endsWith('_at')) yield [`${at} negative`, -1];
  } else if (Array.isArray(value)) {
    yield [`${at} an object`, {}];
    yield [`${at} with a repetition`, [...value, ...value]];
    const [item] = value as readonly JsonValue[];
    if (isJsonObject(item)) {
      for (const [what, broken] of malformed(item, `${at}.0`)) yield [what, [broken]];
    } else if (item !== undefined) {
      for (const [what, broken] of brokenValues(name, item, `${at}.0`)) yield [what, [broken]];
    }
  } else if (isJsonObject(value)) {
    yield [`${at} an array`, []];
    for (const [what, broken] of malformed(value, at)) yield [what, broken];
  }
}
