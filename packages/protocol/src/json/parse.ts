import { limits } from '../limits.ts';
import type { JsonValue } from './types.ts';

/**
 * Why a text was refused.
 * - `syntax`: not one RFC 8259 value in valid UTF-8;
 * - `rule`: valid JSON that breaks a narrower rule of chapter 01, section 2.1.
 *
 * A text can have both faults; the first one found is reported. Use `diagnoseEnvelope` if the
 * answer depends on all faults.
 */
export type JsonFault = 'syntax' | 'rule';

/** A text that the strict parser refuses: its position (`offset`, `path`) and the reason. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  readonly fault: JsonFault;
  /** UTF-16 offset in the text. */
  readonly offset: number;
  /** Names and indexes from the root to the value at fault. */
  readonly path: readonly (string | number)[];

  constructor(fault: JsonFault, reason: string, offset: number, path: (string | number)[] = []) {
    super(`${reason} at offset ${offset}`);
    this.fault = fault;
    this.offset = offset;
    this.path = path;
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes UTF-8; invalid bytes are an error, and a byte order mark stays for the parser to refuse
 * (chapter 01, J1).
 *
 * @throws JsonError with fault `syntax`
 * @example
 * const value = parseJson(decodeUtf8(plaintext));
 */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new JsonError('syntax', 'invalid UTF-8', 0);
  }
}

/**
 * Parses JSON under the rules J1 to J7 of chapter 01, section 2.1: no repeated names, depth up to
 * 16, integers in shortest form within the safe range, no lone surrogates, nothing after the value.
 * `__proto__` is an ordinary name. `null` is left to the schemas (J9).
 *
 * @param maxDepth greater for local records that hold whole protocol objects
 * @throws JsonError
 * @example
 * parseJson('{"a":[1,2]}'); // { a: [1, 2] }
 * parseJson('{"a":1,"a":1}'); // throws JsonError, fault 'rule'
 */
export function parseJson(text: string, maxDepth: number = limits.jsonDepth): JsonValue {
  return new Parser(text, maxDepth).document();
}

/** The plain run of a string: everything that needs no second look. */
const plainRun = /[^"\\\u0000-\u001f\ud800-\udfff]*/y;
const integerRun = /-?(?:0|[1-9][0-9]*)/y;

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

class Parser {
  readonly #text: string;
  #at = 0;
  readonly #path: (string | number)[] = [];

  readonly #maxDepth: number;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  document(): JsonValue {
    this.#space();
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) throw this.#fail('syntax', 'text after the value');
    return value;
  }

  #fail(fault: JsonFault, reason: string): JsonError {
    return new JsonError(fault, reason, this.#at, [...this.#path]);
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at += 1;
    }
  }

  #value(depth: number): JsonValue {
    if (depth > this.#maxDepth) throw this.#fail('rule', `deeper than ${this.#maxDepth}`);
    switch (this.#text.charCodeAt(this.#at)) {
      case 0x7b:
        return this.#object(depth);
      case 0x5b:
        return this.#array(depth);
      case 0x22:
        return this.#string();
      case 0x74:
        return this.#literal('true', true);
      case 0x66:
        return this.#literal('false', false);
      case 0x6e:
        return this.#literal('null', null);
      default:
        return this.#integer();
    }
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

  #string(): string {
    const text = this.#text;
    let at = this.#at + 1;
    let result = '';
    for (;;) {
      plainRun.lastIndex = at;
      plainRun.test(text);
      const end = plainRun.lastIndex;
      const run = text.slice(at, end);
      const code = text.charCodeAt(end);
      at = end;
      if (code === 0x22) {
        this.#at = end + 1;
        return result === '' ? run : result + run;
      }
      result += run;
      if (code === 0x5c) {
        const escaped = this.#escape(at);
        result += escaped.value;
        at = escaped.end;
      } else if (code >= 0xd800 && code <= 0xdfff) {
        const low = text.charCodeAt(at + 1);
        if (code > 0xdbff || !(low >= 0xdc00 && low <= 0xdfff)) {
          this.#at = at;
          throw this.#fail('rule', 'lone surrogate');
        }
        result += text.slice(at, at + 2);
        at += 2;
      } else {
        this.#at = at;
        const reason = at >= text.length ? 'unterminated string' : 'control character in a string';
        throw this.#fail('syntax', reason);
      }
    }
  }

  #escape(at: number): { value: string; end: number } {
    const kind = this.#text[at + 1];
    if (kind !== 'u') {
      const value = kind === undefined ? undefined : escapes[kind];
      if (value === undefined) {
        this.#at = at;
        throw this.#fail('syntax', 'unknown escape');
      }
      return { value, end: at + 2 };
    }
    const unit = this.#hex4(at + 2);
    if (unit < 0xd800 || unit > 0xdfff) return { value: String.fromCharCode(unit), end: at + 6 };
    // A surrogate is only allowed as an escaped pair; a raw other half cannot be well-formed text.
    if (unit <= 0xdbff && this.#text.startsWith('\\u', at + 6)) {
      const low = this.#hex4(at + 8);
      if (low >= 0xdc00 && low <= 0xdfff) {
        return { value: String.fromCharCode(unit, low), end: at + 12 };
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

  #array(depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    this.#at += 1;
    this.#space();
    if (this.#text[this.#at] === ']') {
      this.#at += 1;
      return items;
    }
    for (;;) {
      this.#path.push(items.length);
      items.push(this.#value(depth + 1));
      this.#path.pop();
      this.#space();
      const mark = this.#text[this.#at];
      if (mark !== ',' && mark !== ']') throw this.#fail('syntax', 'expected , or ]');
      this.#at += 1;
      if (mark === ']') return items;
      this.#space();
    }
  }

  #object(depth: number): JsonValue {
    const members: Record<string, JsonValue> = {};
    this.#at += 1;
    this.#space();
    if (this.#text[this.#at] === '}') {
      this.#at += 1;
      return members;
    }
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#fail('syntax', 'expected a member name');
      const start = this.#at;
      const name = this.#string();
      if (Object.hasOwn(members, name)) {
        this.#at = start;
        throw this.#fail('rule', 'repeated member name');
      }
      this.#space();
      if (this.#text[this.#at] !== ':') throw this.#fail('syntax', 'expected :');
      this.#at += 1;
      this.#space();
      this.#path.push(name);
      const value = this.#value(depth + 1);
      this.#path.pop();
      if (name === '__proto__') define(members, name, value);
      else members[name] = value;
      this.#space();
      const mark = this.#text[this.#at];
      if (mark !== ',' && mark !== '}') throw this.#fail('syntax', 'expected , or }');
      this.#at += 1;
      if (mark === '}') return members;
      this.#space();
    }
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
