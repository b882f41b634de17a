/** Finds members of a JSON text's root without reading values. */

/** A member of the root object. */
export interface RootMember {
  /** Name with its escapes resolved. */
  readonly name: string;
  /** Where `"name":value` begins in the text. */
  readonly start: number;
  readonly end: number;
}

const plainRun = /[^"\\\u0000-\u001f]*/y;
const spaceRun = /[ \n\r\t]*/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const word = /true|false|null/y;

/** What comes next in the text; `end`: nothing, or what is no JSON. */
type Expected = 'value' | 'name' | 'rest of a string' | 'mark' | 'end';

export interface RootScanOptions {
  /** Names of the members to find. */
  readonly names: readonly string[];
  /** UTF-16 units of one step. */
  readonly length: number;
}

/**
 * Reads a text as RFC 8259 does, without the narrower rules of the protocol, in steps.
 *
 * @returns the members of the root object that have one of the names, repeated ones included;
 *   `undefined` if the text is not one JSON value
 */
export function* rootMembersInSteps(
  text: string,
  { names, length }: RootScanOptions,
): Generator<undefined, RootMember[] | undefined, undefined> {
  const scanner = new Scanner(text, names);
  for (let end = length; !scanner.run(end); end += length) yield;
  return scanner.isJson ? scanner.members : undefined;
}

class Scanner {
  readonly members: RootMember[] = [];
  isJson = false;
  readonly #text: string;
  readonly #names: ReadonlySet<string>;
  /** Length of the longest name to find if all of it is escaped. */
  readonly #longestName: number;
  #at = 0;
  /** For each open array or object, whether it is an object. */
  readonly #open: boolean[] = [];
  #expected: Expected = 'value';
  /** Whether the string that is read is a name. */
  #isName = false;
  /** Begin and end of the name of the current member of the root. */
  #name = { start: 0, end: 0 };

  constructor(text: string, names: readonly string[]) {
    this.#text = text;
    this.#names = new Set(names);
    this.#longestName = 2 + 6 * Math.max(...names.map((name) => name.length));
    this.#space();
  }

  /** Reads up to about an offset; returns whether the end, or a fault, was found. */
  run(end: number): boolean {
    while (this.#at < end || this.#at >= this.#text.length) {
      if (this.#expected === 'rest of a string') {
        if (!this.#string(end)) return false;
      } else if (this.#expected === 'mark') this.#mark();
      else this.#begin(this.#expected === 'name');
      if (this.#expected === 'end') return true;
    }
    return false;
  }

  /** Mostly there is no space; a text of nothing else is passed over in one piece. */
  #space(): void {
    if (this.#text.charCodeAt(this.#at) <= 0x20) {
      spaceRun.lastIndex = this.#at;
      spaceRun.test(this.#text);
      this.#at = spaceRun.lastIndex;
    }
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  /** Reads a number or word, or the begin of another value or a name. */
  #begin(isName: boolean): void {
    const mark = this.#text[this.#at];
    if (mark === '"') {
      if (isName && this.#open.length === 1) this.#name.start = this.#at;
      this.#at += 1;
      this.#isName = isName;
      this.#expected = 'rest of a string';
    } else if (isName) this.#expected = 'end';
    else if (mark === '{' || mark === '[') this.#openContainer(mark === '{');
    else this.#expected = this.#skip(word) || this.#skip(number) ? 'mark' : 'end';
  }

  #openContainer(isObject: boolean): void {
    this.#at += 1;
    this.#space();
    if (this.#text[this.#at] === (isObject ? '}' : ']')) {
      this.#at += 1;
      this.#expected = 'mark';
      return;
    }
    this.#open.push(isObject);
    this.#expected = isObject ? 'name' : 'value';
  }

  /** Reads the rest of a string; returns `false` if it paused. */
  #string(end: number): boolean {
    for (;;) {
      this.#skip(plainRun);
      if (this.#text[this.#at] === '"') break;
      if (!this.#skip(escaped)) {
        this.#expected = 'end';
        return true;
      }
      if (this.#at >= end) return false;
    }
    this.#at += 1;
    if (this.#isName) this.#endName();
    else this.#expected = 'mark';
    return true;
  }

  #endName(): void {
    if (this.#open.length === 1) this.#name.end = this.#at;
    this.#space();
    const isNamed = this.#text[this.#at] === ':';
    this.#at += 1;
    this.#space();
    this.#expected = isNamed ? 'value' : 'end';
  }

  /** Reads what follows a value: the mark that ends its array or object, or begins the next value. */
  #mark(): void {
    const valueEnd = this.#at;
    this.#space();
    const isObject = this.#open.at(-1);
    const mark = this.#text[this.#at];
    if (isObject === undefined) this.isJson = mark === undefined;
    const isEnd = mark === (isObject === true ? '}' : ']');
    if (isObject === undefined || (mark !== ',' && !isEnd)) {
      this.#expected = 'end';
      return;
    }
    if (isObject && this.#open.length === 1) this.#addMember(valueEnd);
    this.#at += 1;
    if (isEnd) {
      this.#open.pop();
      return;
    }
    this.#space();
    this.#expected = isObject ? 'name' : 'value';
  }

  #addMember(end: number): void {
    const { start, end: nameEnd } = this.#name;
    if (nameEnd - start > this.#longestName) return;
    const source = this.#text.slice(start, nameEnd);
    const name = source.includes('\\') ? (JSON.parse(source) as string) : source.slice(1, -1);
    if (this.#names.has(name)) this.members.push({ name, start, end });
  }
}
