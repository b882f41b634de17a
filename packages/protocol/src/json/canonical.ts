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
  return canonicalMembers(object, changes);
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
  { omit = none, add = nothing }: Omit<CanonicalChanges, 'texts'>,
): { readonly complete: string; readonly changed: string } {
  const prepared = preparedMembers.get(object);
  if (prepared !== undefined) {
    return {
      complete: preparedTexts.get(object) ?? canonicalPrepared(prepared, none, nothing),
      changed: canonicalPrepared(prepared, omit, add),
    };
  }
  const complete = new Members(nothing);
  const changed = new Members(add);
  for (const name of sorted(Object.keys(object))) {
    const value = canonicalJson(object[name] as JsonValue);
    complete.append(name, value);
    if (!omit.includes(name)) changed.append(name, value);
  }
  return { complete: complete.end(), changed: changed.end() };
}

/** No changes; the one that most calls have. */
const none: readonly string[] = [];
const nothing: JsonObject = {};

/** The text of an object, of which members are appended in canonical order. */
class Members {
  readonly #add: JsonObject;
  /** Names of the members to add, in canonical order, and how many of them were. */
  readonly #names: readonly string[];
  #added = 0;
  #text = '';

  constructor(add: JsonObject) {
    this.#add = add;
    this.#names = add === nothing ? none : sorted(Object.keys(add));
  }

  /**
   * Appends a member, after those to add that come before it.
   * @throws TypeError if it is one of them
   */
  append(name: string, value: string): void {
    while (this.#added < this.#names.length && (this.#names[this.#added] as string) < name) {
      this.#appendNext();
    }
    if (this.#names[this.#added] === name) {
      throw new TypeError('canonical JSON has each member once');
    }
    this.#append(name, value);
  }

  end(): string {
    while (this.#added < this.#names.length) this.#appendNext();
    return this.#text === '' ? '{}' : `${this.#text}}`;
  }

  #appendNext(): void {
    const name = this.#names[this.#added] as string;
    this.#added += 1;
    this.#append(name, canonicalJson(this.#add[name] as JsonValue));
  }

  #append(name: string, value: string): void {
    if (this.#text === '') this.#text = `{${canonicalString(name)}:`;
    else this.#text += laterName(name);
    this.#text += value;
  }
}

/** Short names as they follow another member; all are forgotten when there are too many. */
const laterNames = new Map<string, string>();
const mostNames = 1_000;
const shortName = 64;

function laterName(name: string): string {
  const known = laterNames.get(name);
  if (known !== undefined) return known;
  // In one piece: it becomes part of many texts.
  const text = [',', canonicalString(name), ':'].join('');
  if (name.length > shortName) return text;
  if (laterNames.size >= mostNames) laterNames.clear();
  laterNames.set(name, text);
  return text;
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
  { omit = none, add = nothing, texts }: CanonicalChanges = {},
): string {
  const prepared = preparedMembers.get(object);
  if (prepared !== undefined) return canonicalPrepared(prepared, omit, add);
  const members = new Members(add);
  for (const name of sorted(Object.keys(object))) {
    if (omit.includes(name)) continue;
    members.append(name, texts?.get(name) ?? canonicalJson(object[name] as JsonValue));
  }
  return members.end();
}

/** Up to so many names are sorted where they are: `sort` takes memory of its own. */
const fewNames = 32;

/** Sorts names in place by their UTF-16 code units. What was sent as Canonical JSON is in order already. */
function sorted(names: string[]): string[] {
  if (names.length > fewNames) return names.sort();
  for (let index = 1; index < names.length; index += 1) {
    const name = names[index] as string;
    let place = index;
    for (; place > 0 && (names[place - 1] as string) > name; place -= 1) {
      names[place] = names[place - 1] as string;
    }
    names[place] = name;
  }
  return names;
}

/** As {@link canonicalMembers}, of an object whose members were formatted before. */
function canonicalPrepared(
  prepared: readonly PreparedMember[],
  omit: readonly string[],
  add: JsonObject,
): string {
  const members = new Members(add);
  for (const [name, value] of prepared) if (!omit.includes(name)) members.append(name, value);
  return members.end();
}
