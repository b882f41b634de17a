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
 * @param changes.texts canonical texts of root members that were formatted before
 * @throws TypeError also for an added name that the object has already
 * @example
 * canonicalWith({ b: 1, c: 2 }, { omit: ['c'], add: { a: 0 } }); // '{"a":0,"b":1}'
 */
export function canonicalWith(object: JsonObject, changes: CanonicalChanges): string {
  const { omit = [], add = {}, texts } = changes;
  return canonicalMembers(object, { omit, add, texts });
}

interface CanonicalChanges {
  readonly omit?: readonly string[];
  readonly add?: JsonObject;
  readonly texts?: ReadonlyMap<string, string> | undefined;
}

/**
 * Formats an object twice, and each of its members once: as `canonicalJson` does, and with changes
 * as `canonicalWith` does.
 *
 * @throws TypeError as both do
 * @example
 * canonicalTwice({ b: 1, c: 2 }, { omit: ['c'], add: { a: 0 } });
 * // { complete: '{"b":1,"c":2}', changed: '{"a":0,"b":1}' }
 */
export function canonicalTwice(
  object: JsonObject,
  { omit = [], add = {} }: Omit<CanonicalChanges, 'texts'>,
): { readonly complete: string; readonly changed: string } {
  const members = preparedMembers.get(object) ?? formattedMembers(object);
  return {
    complete: preparedTexts.get(object) ?? canonicalPrepared(members, [], {}),
    changed: canonicalPrepared(members, omit, add),
  };
}

/** Formats the members of an object, in canonical order. */
function formattedMembers(object: JsonObject): PreparedMember[] {
  const names = Object.keys(object);
  if (!isSorted(names)) names.sort();
  return names.map((name) => [name, canonicalJson(object[name] as JsonValue)]);
}

const encoder = new TextEncoder();

/** Texts that need no escapes: nearly all. */
const plainText = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

function canonicalString(value: string): string {
  if (plainText.test(value)) return `"${value}"`;
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
  { omit = [], add = {}, texts }: CanonicalChanges = {},
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
    text += `${canonicalString(name)}:${texts?.get(name) ?? canonicalJson(value as JsonValue)}`;
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

/** As {@link canonicalMembers}, of an object whose members were formatted before. */
function canonicalPrepared(
  prepared: readonly PreparedMember[],
  omit: readonly string[],
  add: JsonObject,
): string {
  const added = Object.keys(add).sort();
  let next = 0;
  let text = '';
  const append = (name: string, value: string) => {
    text += `${text === '' ? '' : ','}${canonicalString(name)}:${value}`;
  };
  const appendAdded = () => {
    const name = added[next] as string;
    next += 1;
    append(name, canonicalJson(add[name] as JsonValue));
  };
  for (const [name, value] of prepared) {
    if (omit.includes(name)) continue;
    while (next < added.length && (added[next] as string) < name) appendAdded();
    if (added[next] === name) throw new TypeError('canonical JSON has each member once');
    append(name, value);
  }
  while (next < added.length) appendAdded();
  return `{${text}}`;
}
