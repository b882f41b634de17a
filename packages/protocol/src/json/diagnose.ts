import { utf8Length } from '../encoding/bytes.ts';
import { rpcErrors } from '../errors.ts';
import { limits } from '../limits.ts';
import { parseJson } from './parse.ts';
import { isJsonObject, type JsonValue } from './types.ts';

/** How to answer a JSON-RPC text that the strict parser refused. */
export interface EnvelopeFault {
  /** -32700 Parse Error, -32600 Invalid Request or -32602 Invalid Params. */
  readonly rpc: -32700 | -32600 | -32602;
  /** The `id` to answer with; `null` if no valid one can be read. */
  readonly id: string | number | null;
}

/**
 * Returns whether a value may be the `id` of a JSON-RPC request (chapter 02, section 3.4).
 *
 * @example
 * isRpcId(1.5); // false
 */
export function isRpcId(value: unknown): value is string | number {
  if (typeof value === 'string') return utf8Length(value) <= limits.rpcIdBytes;
  return Number.isSafeInteger(value);
}

/**
 * Decides how to answer a text from a client WebSocket or a relay RPC stream that {@link parseJson}
 * refused (chapter 01, section 19, last row; chapter 02, section 18):
 * - -32700 if the text is not one RFC 8259 value in well-formed Unicode;
 * - -32602 if the envelope is a request and every fault lies inside `params`;
 * - -32600 for everything else: a fault of the envelope weighs more than one of its `params`.
 *
 * Only the code and the `id` come out. The root is taken apart without recursion and each member
 * read strictly by itself, so that no value of a faulty text ever reaches a caller.
 *
 * @example
 * diagnoseEnvelope('{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1.0}}');
 * // { rpc: -32602, id: 7 }
 */
export function diagnoseEnvelope(text: string): EnvelopeFault {
  if (!text.isWellFormed() || !isJson(text)) return { rpc: rpcErrors.parse_error, id: null };
  const members = rootMembers(text);
  const found = new Map<string, JsonValue | undefined>();
  let envelopeFault = false;
  for (const { name, source } of members) {
    if (found.has(name)) {
      found.set(name, undefined);
      envelopeFault = true;
    } else if (!envelopeFault || name === 'id') {
      // Once the code is decided only the id matters: do not parse the other members.
      const value = strictMember(source);
      found.set(name, value);
      if (value === undefined && name !== 'params') envelopeFault = true;
    }
  }
  const id = found.get('id');
  const request =
    isRpcId(id) && found.get('jsonrpc') === '2.0' && typeof found.get('method') === 'string';
  return {
    rpc: envelopeFault || !request ? rpcErrors.invalid_request : -32602,
    id: isRpcId(id) ? id : null,
  };
}

/** RFC 8259 as the platform reads it; engines do so without recursion. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the value of one member read strictly, at the depth it has in the envelope. */
function strictMember(source: string): JsonValue | undefined {
  try {
    const envelope = parseJson(`{${source}}`);
    return isJsonObject(envelope) ? Object.values(envelope)[0] : undefined;
  } catch {
    return undefined;
  }
}

interface Member {
  /** Name with its escapes resolved. */
  readonly name: string;
  /** `"name":value` as in the text. */
  readonly source: string;
}

/**
 * Members of the root object of a text known to be JSON, repeated names included; none for any
 * other root.
 */
function rootMembers(text: string): Member[] {
  const members: Member[] = [];
  let at = skip(space, text, 0);
  if (text[at] !== '{') return members;
  at = skip(space, text, at + 1);
  while (text[at] === '"') {
    const start = at;
    const nameEnd = stringEnd(text, start);
    at = valueEnd(text, nameEnd);
    members.push({
      name: JSON.parse(text.slice(start, nameEnd)) as string,
      source: text.slice(start, at),
    });
    at = skip(space, text, at + 1);
  }
  return members;
}

const space = /[ \t\n\r]*/y;
/** Everything that neither opens, closes nor separates. */
const plain = /[^"[\]{},]*/y;

function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  pattern.test(text);
  return pattern.lastIndex;
}

/** Returns the position after the string that opens at `from`. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** Returns the position of the `,` or `}` that ends the value after `from`. */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  let at = from;
  for (;;) {
    at = skip(plain, text, at);
    const mark = text[at];
    if (mark === '"') {
      at = stringEnd(text, at);
      continue;
    }
    if (depth === 0 && (mark === ',' || mark === '}')) return at;
    if (mark === '{' || mark === '[') depth += 1;
    else if (mark !== ',') depth -= 1;
    at += 1;
  }
}
