/** Finds the members of a JSON text's root without reading their values. */

/** A member of the root object. */
export interface RootMember {
  /** Name with its escapes resolved. */
  readonly name: string;
  /** `"name":value` as in the text. */
  readonly source: string;
}

const plainRun = /[^"\\\u0000-\u001f]*/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const word = /true|false|null/y;
const space = /[ \t\n\r]*/y;

/**
 * Reads a text as RFC 8259 does, without the narrower rules of the protocol, in steps.
 *
 * @param length UTF-16 units of one step
 * @returns the members of the root object, repeated names included, none for any other root;
 *   `undefined` if the text is not one JSON value
 */
export function* rootMembersInSteps(
  text: string,
  length: number,
): Generator<undefined, RootMember[] | undefined, undefined> {
  const scanner = new Scanner(text);
  for (let end = length; !scanner.run(end); end += length) yield;
  return scanner.isJson ? scanner.members : undefined;
}

class Scanner {
  readonly members: RootMember[] = [];
  isJson = false;
  readonly #text: string;
  #at = 0;
  /** For each open array or object, whether it is an object. */
  readonly #open: boolean[] = [];
  #isNameNext = false;
  #isInString = false;
  /** Begin and end of the name of the current member of the root. */
  #name = { start: 0, end: 0 };

  constructor(text: string) {
    this.#text = text;
    this.#skip(space);
  }

  /** Reads up to about an offset; returns whether the end, or a fault, was found. */
  run(end: number): boolean {
    while (this.#at < end || this.#at >= this.#text.length) {
      const isRead = this.#isInString ? this.#string(end) : this.#begin(end);
      if (isRead === undefined) return false;
      if (!isRead) return true;
      if (this.isJson) return true;
    }
    return false;
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  /** Reads a value or name, or its begin; `undefined`: it paused, `false`: no JSON. */
  #begin(end: number): boolean | undefined {
    const mark = this.#text[this.#at];
    if (mark === '"') {
      if (this.#isNameNext && this.#open.length === 1) this.#name.start = this.#at;
      this.#at += 1;
      this.#isInString = true;
      return this.#string(end);
    }
    if (this.#isNameNext) return false;
    if (mark === '{' || mark === '[') return this.#openContainer(mark === '{');
    const isRead = this.#skip(word) || this.#skip(number);
    return isRead && this.#endValue();
  }

  #openContainer(isObject: boolean): boolean {
    this.#at += 1;
    this.#skip(space);
    this.#open.push(isObject);
    if (this.#text[this.#at] === (isObject ? '}' : ']')) {
      this.#at += 1;
      this.#open.pop();
      return this.#endValue();
    }
    this.#isNameNext = isObject;
    return true;
  }

  #string(end: number): boolean | undefined {
    for (;;) {
      this.#skip(plainRun);
      const mark = this.#text[this.#at];
      if (mark === '"') break;
      if (!this.#skip(escaped)) return false;
      if (this.#at >= end) return undefined;
    }
    this.#at += 1;
    this.#isInString = false;
    return this.#isNameNext ? this.#endName() : this.#endValue();
  }

  #endName(): boolean {
    if (this.#open.length === 1) this.#name.end = this.#at;
    this.#skip(space);
    if (this.#text[this.#at] !== ':') return false;
    this.#at += 1;
    this.#skip(space);
    this.#isNameNext = false;
    return true;
  }

  /** Ends a value and all that ends with it, up to the next value or name. */
  #endValue(): boolean {
    for (;;) {
      const valueEnd = this.#at;
      this.#skip(space);
      const isObject = this.#open.at(-1);
      if (isObject === undefined) {
        this.isJson = this.#at >= this.#text.length;
        return this.isJson;
      }
      const mark = this.#text[this.#at];
      if (mark !== ',' && mark !== (isObject ? '}' : ']')) return false;
      if (isObject && this.#open.length === 1) this.#addMember(valueEnd);
      this.#at += 1;
      if (mark === ',') {
        this.#skip(space);
        this.#isNameNext = isObject;
        return true;
      }
      this.#open.pop();
    }
  }

  #addMember(end: number): void {
    const { start, end: nameEnd } = this.#name;
    const name = JSON.parse(this.#text.slice(start, nameEnd)) as string;
    this.members.push({ name, source: this.#text.slice(start, end) });
  }
}
