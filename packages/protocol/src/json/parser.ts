import { type JsonFacts, keepFacts } from './facts.ts';
import { JsonError, type JsonFault } from './json-error.ts';
import type { JsonValue } from './types.ts';
import { UnescapedText } from './unescaped-text.ts';

/** The plain run of a string: everything that needs no second look. */
const plainRun = /[^"\\\u0000-\u001f\ud800-\udfff]*/y;
const spaceRun = /[ \n\r\t]*/y;
const integerRun = /-?(?:0|[1-9][0-9]*)/y;

/** What may follow a backslash, besides `u`, and what each of them stands for. */
const escapes = '"\\/bfnrt';
const escaped = '"\\/\b\f\n\r\t';

/** An array or object whose end was not read yet, with what is known of it so far. */
interface Open extends Writable<JsonFacts> {
  readonly array: JsonValue[] | undefined;
  readonly members: Record<string, JsonValue>;
  /** Where it begins. */
  readonly start: number;
  /** Name or index of the value that is read now; absent between values. */
  key: string | number | undefined;
}

type Writable<T> = { -readonly [N in keyof T]: T[N] };

/** Facts are kept of arrays and objects of so many UTF-16 units and more. */
const factsLength = 4_096;

/**
 * UTF-16 units of a text from which short strings are copied, and of these strings. V8 makes a string
 * of 13 units or more a reference into the text: a remembered identifier would keep the whole text in
 * memory. Names of members are copies always.
 */
const keptLength = 8_192;
const shortest = 13;
const longest = 256;

/** Of an array. */
const noMembers: Record<string, JsonValue> = Object.freeze({});

/** What comes next in the text. */
type Expected = 'value' | 'name' | 'rest of a string' | 'rest of a name' | 'nothing';

/**
 * A strict parser that can pause after each value, and within a string.
 * @internal
 */
export class Parser {
  /** The root, once {@link run} has returned `true`. */
  value: JsonValue | undefined;
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #keepsFacts: boolean;
  #at = 0;
  #expected: Expected = 'value';
  /** From the root to the innermost one. */
  readonly #open: Open[] = [];
  /** Where the part of a string begins that is read now: after its quotation mark, or its last escape. */
  #runStart = 0;
  /** What comes before that part, if the string has escapes. */
  #unescaped: UnescapedText | undefined;
  #nameStart = 0;

  /** @param keepsFacts whether facts about large values are kept */
  constructor(text: string, maxDepth: number, keepsFacts: boolean) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#keepsFacts = keepsFacts;
    this.#space();
  }

  /**
   * Reads up to about an offset of the text.
   * @returns whether the document is complete
   */
  run(end: number): boolean {
    for (;;) {
      switch (this.#expected) {
        case 'value':
          if (!this.#value(end)) return false;
          break;
        case 'rest of a string': {
          const rest = this.#string(end);
          if (rest === undefined) return false;
          this.#close(this.#copyShort(rest));
          break;
        }
        case 'name':
          if (this.#text[this.#at] !== '"') throw this.#fail('syntax', 'expected a member name');
          this.#nameStart = this.#at;
          this.#beginString();
          this.#expected = 'rest of a name';
          break;
        case 'rest of a name': {
          const name = this.#string(end);
          if (name === undefined) return false;
          this.#name(name);
          break;
        }
        case 'nothing':
          return true;
      }
      if (this.#at >= end && this.#at < this.#text.length) return false;
    }
  }

  #fail(fault: JsonFault, reason: string): JsonError {
    const path = this.#open.flatMap(({ key }) => key ?? []);
    return new JsonError(fault, reason, this.#at, path);
  }

  /** Mostly there is no space; a text of nothing else is passed over in one piece. */
  #space(): void {
    if (this.#text.charCodeAt(this.#at) <= 0x20) {
      spaceRun.lastIndex = this.#at;
      spaceRun.test(this.#text);
      this.#at = spaceRun.lastIndex;
    }
  }

  /** Reads a value, or the beginning of one; returns `false` if it paused in a string. */
  #value(end: number): boolean {
    if (this.#open.length > this.#maxDepth) {
      throw this.#fail('rule', `deeper than ${this.#maxDepth}`);
    }
    switch (this.#text.charCodeAt(this.#at)) {
      case 0x7b:
        this.#begin(undefined, 0x7d);
        return true;
      case 0x5b:
        this.#begin([], 0x5d);
        return true;
      case 0x22: {
        this.#beginString();
        const string = this.#string(end);
        if (string === undefined) {
          this.#expected = 'rest of a string';
          return false;
        }
        this.#close(this.#copyShort(string));
        return true;
      }
      case 0x74:
        this.#close(this.#literal('true', true));
        return true;
      case 0x66:
        this.#close(this.#literal('false', false));
        return true;
      case 0x6e:
        this.#close(this.#literal('null', null));
        return true;
      default:
        this.#close(this.#integer());
        return true;
    }
  }

  /** Begins an array or an object. */
  #begin(array: JsonValue[] | undefined, endMark: number): void {
    this.#at += 1;
    this.#space();
    const members: Record<string, JsonValue> = array === undefined ? {} : noMembers;
    if (this.#text.charCodeAt(this.#at) === endMark) {
      this.#at += 1;
      this.#close(array ?? members);
      return;
    }
    const key = array === undefined ? undefined : 0;
    const facts = { hasNull: false, hasContext: false, depth: 0, items: 0 };
    this.#open.push({ array, members, start: this.#at, key, ...facts });
    this.#expected = array === undefined ? 'name' : 'value';
  }

  /** Ends a value: puts it into its array or object, and ends those that end with it. */
  #close(complete: JsonValue): void {
    let value = complete;
    for (;;) {
      const open = this.#open.at(-1);
      if (open === undefined) {
        this.#finish(value);
        return;
      }
      const { array, members, key } = open;
      open.key = undefined;
      if (value === null) open.hasNull = true;
      if (open.depth === 0) open.depth = 1;
      if (array !== undefined) array.push(value);
      else if (key === '__proto__') define(members, key, value);
      else members[key as string] = value;
      this.#space();
      const code = this.#text.charCodeAt(this.#at);
      if (code === 0x2c) {
        this.#at += 1;
        this.#space();
        if (array !== undefined) open.key = array.length;
        this.#expected = array === undefined ? 'name' : 'value';
        return;
      }
      if (code !== (array === undefined ? 0x7d : 0x5d)) {
        throw this.#fail('syntax', array === undefined ? 'expected , or }' : 'expected , or ]');
      }
      this.#at += 1;
      this.#open.pop();
      value = array ?? members;
      if (this.#keepsFacts) this.#noteFacts(value, open);
    }
  }

  /** Keeps the facts of a value that is complete, and adds them to those of what contains it. */
  #noteFacts(value: object, open: Open): void {
    const { hasNull, hasContext, depth, items } = open;
    if (this.#at - open.start >= factsLength)
      keepFacts(value, { hasNull, hasContext, depth, items });
    const outer = this.#open.at(-1);
    if (outer === undefined) return;
    outer.hasNull ||= hasNull;
    outer.hasContext ||= hasContext;
    outer.depth = Math.max(outer.depth, depth + 1);
    if (outer.array === undefined && open.array !== undefined) outer.items += open.array.length;
  }

  #finish(value: JsonValue): void {
    this.#space();
    if (this.#at < this.#text.length) throw this.#fail('syntax', 'text after the value');
    this.value = value;
    this.#expected = 'nothing';
  }

  /** Ends a member's name, up to its value. */
  #name(name: string): void {
    const open = this.#open.at(-1) as Open;
    if (Object.hasOwn(open.members, name)) {
      this.#at = this.#nameStart;
      throw this.#fail('rule', 'repeated member name');
    }
    this.#space();
    if (this.#text[this.#at] !== ':') throw this.#fail('syntax', 'expected :');
    this.#at += 1;
    this.#space();
    if (name === '$context') open.hasContext = true;
    open.key = name;
    this.#expected = 'value';
  }

  #literal<T extends boolean | null>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#fail('syntax', 'unknown literal');
    this.#at += word.length;
    return value;
  }

  #integer(): number {
    integerRun.lastIndex = this.#at;
    const token = integerRun.exec(this.#text)?.[0];
    if (token === undefined) throw this.#fail('syntax', 'expected a value');
    const next = this.#text[this.#at + token.length];
    if (next === '.' || next === 'e' || next === 'E') {
      throw this.#fail('rule', 'number is not an integer');
    }
    if (next !== undefined && next >= '0' && next <= '9') {
      throw this.#fail('syntax', 'number with a leading zero');
    }
    const value = Number(token);
    if (token === '-0') throw this.#fail('rule', 'negative zero');
    if (!Number.isSafeInteger(value)) throw this.#fail('rule', 'integer out of range');
    this.#at += token.length;
    return value;
  }

  #beginString(): void {
    this.#at += 1;
    this.#runStart = this.#at;
    this.#unescaped = undefined;
  }

  /** Reads on in a string, to its end; returns `undefined` if it paused. */
  #string(end: number): string | undefined {
    const text = this.#text;
    let at = this.#at;
    for (;;) {
      plainRun.lastIndex = at;
      plainRun.test(text);
      at = plainRun.lastIndex;
      const code = text.charCodeAt(at);
      if (code === 0x22) {
        this.#at = at + 1;
        if (this.#unescaped === undefined) return text.slice(this.#runStart, at);
        this.#unescaped.addRun(text, this.#runStart, at);
        return this.#unescaped.end();
      }
      if (code === 0x5c) {
        this.#unescaped ??= new UnescapedText();
        this.#unescaped.addRun(text, this.#runStart, at);
        at = this.#escape(at, this.#unescaped);
        this.#runStart = at;
      } else if (code >= 0xd800 && code <= 0xdfff) {
        const low = text.charCodeAt(at + 1);
        if (code > 0xdbff || !(low >= 0xdc00 && low <= 0xdfff)) {
          this.#at = at;
          throw this.#fail('rule', 'lone surrogate');
        }
        at += 2;
      } else {
        this.#at = at;
        const reason = at >= text.length ? 'unterminated string' : 'control character in a string';
        throw this.#fail('syntax', reason);
      }
      if (at >= end && at < text.length) {
        this.#at = at;
        return undefined;
      }
    }
  }

  /** Copies a short string, so that it does not keep a large text in memory. */
  #copyShort(value: string): string {
    const { length } = value;
    if (length < shortest || length > longest || this.#text.length <= keptLength) return value;
    // Of two parts it makes one; a single one it returns as it is.
    return [value.slice(0, 1), value.slice(1)].join('');
  }

  /** Reads an escape, or an escaped pair of surrogates; returns where it ends. */
  #escape(at: number, unescaped: UnescapedText): number {
    const kind = this.#text[at + 1];
    if (kind !== 'u') {
      const index = kind === undefined ? -1 : escapes.indexOf(kind);
      if (index < 0) {
        this.#at = at;
        throw this.#fail('syntax', 'unknown escape');
      }
      unescaped.addUnit(escaped.charCodeAt(index));
      return at + 2;
    }
    const unit = this.#hex4(at + 2);
    unescaped.addUnit(unit);
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    // A surrogate is only allowed as an escaped pair; a raw other half cannot be well-formed text.
    if (unit <= 0xdbff && this.#text.startsWith('\\u', at + 6)) {
      const low = this.#hex4(at + 8);
      if (low >= 0xdc00 && low <= 0xdfff) {
        unescaped.addUnit(low);
        return at + 12;
      }
    }
    this.#at = at;
    throw this.#fail('rule', 'lone surrogate');
  }

  #hex4(at: number): number {
    const digits = this.#text.slice(at, at + 4);
    if (!/^[0-9A-Fa-f]{4}$/.test(digits)) {
      this.#at = at;
      throw this.#fail('syntax', 'malformed unicode escape');
    }
    return Number.parseInt(digits, 16);
  }
}

/** Sets a member whose name an assignment would treat as the prototype. */
function define(members: Record<string, JsonValue>, name: string, value: JsonValue): void {
  Object.defineProperty(members, name, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
