/**
 * A second strict parser, the oracle of the hostile tests: written from 01 §2.1 and RFC 8259 alone,
 * without any code of the protocol package. It decodes UTF-8 by itself, cuts the text into tokens
 * with one expression, and reads the tokens with a stack instead of recursion. It collects what
 * breaks the narrower rules J2 and J4 to J7 instead of stopping there, so that it can also say which
 * error a JSON-RPC text deserves (01 §19, last row).
 */

/** A node of the tree. Objects are maps: the first of repeated members stays. */
type Node = null | boolean | string | number | Node[] | Map<string, Node>;

interface Reading {
  /** Whether the bytes are one RFC 8259 value in valid UTF-8. */
  readonly isJson: boolean;
  /** Breaches of J2 and J4 to J7: the root members that hold them; `''` is the root itself. */
  readonly faults: readonly string[];
  /** Only if the text is JSON. */
  readonly value: Node | undefined;
}

const notJson: Reading = { isJson: false, faults: [], value: undefined };

/** Decodes UTF-8 (RFC 3629); `undefined` if the bytes are not valid. */
function decode(bytes: Uint8Array): string | undefined {
  const points: number[] = [];
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] as number;
    const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length === 0 || first > 0xf4 || at + length > bytes.length) return undefined;
    let point = length === 1 ? first : first & (0x7f >> length);
    for (let next = 1; next < length; next += 1) {
      const byte = bytes[at + next] as number;
      if (byte >> 6 !== 2) return undefined;
      point = (point << 6) | (byte & 0x3f);
    }
    const isOverlong = (length === 3 && point < 0x800) || (length === 4 && point < 0x10000);
    if (isOverlong || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return undefined;
    points.push(point);
    at += length;
    if (points.length === 4_096) parts.push(String.fromCodePoint(...points.splice(0)));
  }
  parts.push(String.fromCodePoint(...points));
  return parts.join('');
}

/** One token of RFC 8259: white space, a mark, a word, a number or a string. */
const token =
  /([ \t\n\r]+)|([{}[\],:])|(true|false|null)|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|"((?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"/uy;

type Token =
  | { readonly kind: 'mark'; readonly mark: string }
  | { readonly kind: 'value'; readonly value: Node; readonly isRight: boolean };

/** Cuts a text into tokens; `undefined` if some of it is none. */
function tokens(text: string): Token[] | undefined {
  const found: Token[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const match = token.exec(text);
    if (match === null) return undefined;
    const [, space, mark, word, number, string] = match;
    if (space !== undefined) continue;
    if (mark !== undefined) found.push({ kind: 'mark', mark });
    else if (word !== undefined)
      found.push({ kind: 'value', value: words[word] as Node, isRight: true });
    else if (number !== undefined) found.push(numberToken(number));
    else found.push(stringToken(string as string));
  }
  return found;
}

const words: Readonly<Record<string, Node>> = { true: true, false: false, null: null };

/** J6 and J7. */
function numberToken(text: string): Token {
  const isInteger = !/[.eE]/.test(text) && text !== '-0';
  const isRight = isInteger && text.length <= 17 && withinSafeRange(BigInt(text));
  return { kind: 'value', value: isRight ? Number.parseInt(text, 10) : 0, isRight };
}

function withinSafeRange(value: bigint): boolean {
  return value <= 9_007_199_254_740_991n && value >= -9_007_199_254_740_991n;
}

const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** J2: a surrogate without its other half. */
function stringToken(text: string): Token {
  const value = text.includes('\\')
    ? text.replaceAll(/\\(?:u(....)|(.))/gs, (_, hex?: string, kind = '') =>
        hex === undefined ? (controls[kind] ?? kind) : String.fromCharCode(Number(`0x${hex}`)),
      )
    : text;
  return { kind: 'value', value, isRight: !/\p{Surrogate}/u.test(value) };
}

/** An array or object that is not complete. */
interface Open {
  readonly node: Node[] | Map<string, Node>;
  /** The root member it belongs to. */
  readonly member: string;
  /** Name of the member whose value comes next; objects only. */
  name: string | undefined;
  /** The name occurred before in this object. */
  isRepeated: boolean;
}

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or end' | 'nothing';

class Reader {
  readonly #open: Open[] = [];
  readonly #faults: string[] = [];
  #expected: Expected = 'value';
  #root: Node | undefined;

  read(all: readonly Token[]): Reading {
    for (const one of all) {
      const isFine = one.kind === 'value' ? this.#take(one) : this.#mark(one.mark);
      if (!isFine) return notJson;
    }
    if (this.#expected !== 'nothing') return notJson;
    return { isJson: true, faults: this.#faults, value: this.#root };
  }

  #take({ value, isRight }: Token & { kind: 'value' }): boolean {
    if (this.#expected === 'name' || this.#expected === 'name or }') {
      if (typeof value !== 'string') return false;
      this.#name(value, isRight);
      return true;
    }
    if (this.#expected !== 'value' && this.#expected !== 'value or ]') return false;
    const member = this.#add(value);
    if (!isRight) this.#faults.push(member);
    this.#expected = this.#open.length > 0 ? ', or end' : 'nothing';
    return true;
  }

  #name(name: string, isRight: boolean): void {
    const object = this.#open.at(-1) as Open;
    object.name = name;
    object.isRepeated = (object.node as Map<string, Node>).has(name);
    // J4. The name of a root member is the root's own.
    const isOfRoot = this.#open.length === 1;
    if (!isRight || object.isRepeated) this.#faults.push(isOfRoot ? '' : object.member);
    if (isOfRoot && object.isRepeated) this.#faults.push(name);
    this.#expected = ':';
  }

  #mark(mark: string): boolean {
    const expected = this.#expected;
    const inside = this.#open.at(-1);
    const isObject = inside?.node instanceof Map;
    if (mark === '{' || mark === '[') {
      if (expected !== 'value' && expected !== 'value or ]') return false;
      const node: Open['node'] = mark === '{' ? new Map() : [];
      const member = this.#add(node);
      this.#open.push({ node, member, name: undefined, isRepeated: false });
      this.#expected = mark === '{' ? 'name or }' : 'value or ]';
      return true;
    }
    if (mark === ':') {
      this.#expected = 'value';
      return expected === ':';
    }
    if (mark === ',') {
      this.#expected = isObject ? 'name' : 'value';
      return expected === ', or end';
    }
    const isEmpty = expected === (isObject ? 'name or }' : 'value or ]');
    if (mark !== (isObject ? '}' : ']') || !(isEmpty || expected === ', or end')) return false;
    this.#open.pop();
    this.#expected = this.#open.length > 0 ? ', or end' : 'nothing';
    return inside !== undefined;
  }

  /** Puts a node into its place; returns the root member that it belongs to. */
  #add(node: Node): string {
    const parent = this.#open.at(-1);
    if (parent === undefined) {
      this.#root = node;
      return '';
    }
    const name = parent.name ?? '';
    const member = this.#open.length > 1 ? parent.member : name;
    // J5: the root has depth 0, so this node has the number of those around it.
    if (this.#open.length > 16) this.#faults.push(member);
    if (Array.isArray(parent.node)) parent.node.push(node);
    else if (!parent.isRepeated) parent.node.set(name, node);
    return member;
  }
}

/** Reads bytes under 01 §2.1. They are accepted if they are JSON and have no faults. */
export function readStrictly(bytes: Uint8Array): Reading {
  const text = decode(bytes);
  const all = text === undefined ? undefined : tokens(text);
  return all === undefined ? notJson : new Reader().read(all);
}

/** Returns whether a value of another parser is the one of this tree. */
export function isSame(node: Node, value: unknown): boolean {
  if (Array.isArray(node)) {
    return (
      Array.isArray(value) &&
      value.length === node.length &&
      node.every((item, index) => isSame(item, value[index]))
    );
  }
  if (node instanceof Map) {
    if (typeof value !== 'object' || value === null) return false;
    if (Object.getPrototypeOf(value) !== Object.prototype) return false;
    const names = Reflect.ownKeys(value);
    if (names.length !== node.size) return false;
    return [...node].every(
      ([name, item]) =>
        Object.hasOwn(value, name) &&
        isSame(item, Object.getOwnPropertyDescriptor(value, name)?.value),
    );
  }
  return Object.is(node, value);
}

/** Writes a tree in the canonical form of 01 §3. */
export function canonicalForm(node: Node): string {
  if (typeof node === 'string') return quoted(node);
  if (Array.isArray(node)) return `[${node.map(canonicalForm).join(',')}]`;
  if (!(node instanceof Map)) return String(node);
  const names = [...node.keys()].sort(byCodeUnits);
  return `{${names.map((name) => `${quoted(name)}:${canonicalForm(node.get(name) as Node)}`).join(',')}}`;
}

function byCodeUnits(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  const [left, right] = [a, b].map((text) => (at < text.length ? text.charCodeAt(at) : -1));
  return (left as number) - (right as number);
}

const shortEscapes = new Map<string, string>([
  ...([
    ['"', '\\"'],
    ['\\', '\\\\'],
    ['\b', '\\b'],
    ['\t', '\\t'],
  ] as const),
  ...([
    ['\n', '\\n'],
    ['\f', '\\f'],
    ['\r', '\\r'],
  ] as const),
]);

function quoted(text: string): string {
  const escaped = text.replaceAll(
    /["\\\u0000-\u001f]/g,
    (unit) =>
      shortEscapes.get(unit) ??
      `\\u00${unit.charCodeAt(0) < 16 ? '0' : '1'}${(unit.charCodeAt(0) % 16).toString(16)}`,
  );
  return `"${escaped}"`;
}

/** What a client WebSocket answers to a text that is not a right request (01 §19, 02 §3.4). */
interface Deserved {
  readonly code: -32700 | -32600 | -32602;
  readonly id: string | number | null;
}

/** Judges a WebSocket message; `undefined` if it is a request that reaches dispatch. */
export function judgeRequest(reading: Reading): Deserved | undefined {
  const { isJson, faults, value } = reading;
  if (!isJson) return { code: -32700, id: null };
  if (!(value instanceof Map)) return { code: -32600, id: null };
  const at = (name: string) => (faults.includes(name) ? undefined : value.get(name));
  const found = at('id');
  const id = isId(found) ? found : null;
  const outside = faults.some((member) => member !== 'params');
  const isRequest = at('jsonrpc') === '2.0' && typeof at('method') === 'string' && id !== null;
  if (outside || !isRequest) return { code: -32600, id };
  return faults.length > 0 ? { code: -32602, id } : undefined;
}

function isId(value: Node | undefined): value is string | number {
  if (typeof value === 'number') return true;
  return typeof value === 'string' && Buffer.byteLength(value) <= 128;
}
