import { type PreparedMember, preparedMembers, preparedTexts } from './prepared.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './types.ts';

/**
 * Formats a value as Canonical JSON (chapter 01, section 3): RFC 8785 restricted to safe integers.
 * Members sorted by UTF-16 code units, no white space, arrays in order, `null` kept.
 *
 * @throws TypeError for what is not protocol JSON: `undefined`, fractions, `-0`, lone surrogates
 * @example
 * canonicalJson({ b: [2, 1], a: 'é' }); // '{"a":"é","b":[2,1]}'
 */
export function canonicalJson(value: JsonValue): string {
  switch (typeof value) {
    case 'string':
      return canonicalString(value);
    case 'number':
      if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
        throw new TypeError('canonical JSON has safe integers only');
      }
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return preparedTexts.get(value) ?? canonicalContainer(value);
    default:
      throw new TypeError(`canonical JSON has no ${typeof value}`);
  }
}

/**
 * Formats a value as Canonical JSON in UTF-8.
 *
 * @example
 * canonicalBytes({ a: 1 }).length; // 7
 */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return encoder.encode(canonicalJson(value));
}

/**
 * Formats an object as Canonical JSON with some root members left out and one added: the
 * construction of signing and hash inputs (chapter 01, section 4). The object itself is not copied.
 *
 * @throws TypeError also for an added name that the object has already
 * @example
 * canonicalWith({ b: 1, c: 2 }, { omit: ['c'], add: { a: 0 } }); // '{"a":0,"b":1}'
 */
export function canonicalWith(
  object: JsonObject,
  changes: { readonly omit?: readonly string[]; readonly add?: JsonObject },
): string {
  return canonicalMembers(object, changes.omit, changes.add);
}

const encoder = new TextEncoder();

function canonicalString(value: string): string {
  if (!value.isWellFormed()) throw new TypeError('canonical JSON has no lone surrogates');
  return JSON.stringify(value);
}

function canonicalContainer(value: readonly JsonValue[] | JsonObject): string {
  return isJsonObject(value) ? canonicalMembers(value) : canonicalArray(value);
}

function canonicalArray(items: readonly JsonValue[]): string {
  let text = '[';
  for (let index = 0; index < items.length; index += 1) {
    if (index > 0) text += ',';
    text += canonicalJson(items[index] as JsonValue);
  }
  return `${text}]`;
}

function canonicalMembers(
  object: JsonObject,
  omit: readonly string[] = [],
  add: JsonObject = {},
): string {
  const prepared = preparedMembers.get(object);
  if (prepared !== undefined) return canonicalPrepared(prepared, omit, add);
  let names = Object.keys(object);
  if (omit.length > 0) names = names.filter((name) => !omit.includes(name));
  const added = Object.keys(add);
  for (const name of added) {
    if (names.includes(name)) throw new TypeError('canonical JSON has each member once');
    names.push(name);
  }
  // What was sent as Canonical JSON is in order already.
  if (!isSorted(names)) names.sort();
  let text = '{';
  for (const name of names) {
    const value = added.length > 0 && Object.hasOwn(add, name) ? add[name] : object[name];
    if (text.length > 1) text += ',';
    text += `${canonicalString(name)}:${canonicalJson(value as JsonValue)}`;
  }
  return `${text}}`;
}

/** Whether names are in the order of their UTF-16 code units, as `sort` puts them. */
function isSorted(names: readonly string[]): boolean {
  for (let index = 1; index < names.length; index += 1) {
    if ((names[index - 1] as string) > (names[index] as string)) return false;
  }
  return true;
}

/** As {@link canonicalMembers}, of an object whose members were formatted in steps. */
function canonicalPrepared(
  prepared: readonly PreparedMember[],
  omit: readonly string[],
  add: JsonObject,
): string {
  const members = prepared.filter(([name]) => !omit.includes(name));
  for (const name of Object.keys(add).sort()) {
    const at = members.findIndex(([other]) => other >= name);
    if (members[at]?.[0] === name) throw new TypeError('canonical JSON has each member once');
    const member: PreparedMember = [name, canonicalJson(add[name] as JsonValue)];
    members.splice(at === -1 ? members.length : at, 0, member);
  }
  return `{${members.map(([name, text]) => `${canonicalString(name)}:${text}`).join(',')}}`;
}
