/**
 * Schemas: TypeBox gives the static type, `schema-check.ts` the check of an object's shape. Rules
 * that a schema cannot express (a signature, a derived ID, a size in canonical bytes, the `$type`
 * that depends on the service word) are in a `checkX` or `verifyX` next to it.
 */
import type { Static, TSchema } from 'typebox';
import { base64urlLength, base64urlPattern } from './encoding/base64url.ts';
import { utf8Length } from './encoding/bytes.ts';
import { isOnlyWhitespace } from './encoding/whitespace.ts';
import { badRequest, ProtocolError } from './errors.ts';
import type { Network } from './identity/network.ts';
import { canonicalJson } from './json/canonical.ts';
import { factsOf } from './json/facts.ts';
import { preparedTexts } from './json/prepared.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json/types.ts';
import { schemaCheck } from './schema-check.ts';
import * as Type from './type.ts';

export type { Static, TSchema } from 'typebox';
export { Type };

/** Integer 0..2^53-1. */
export const Counter = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** UTC Unix seconds; any safe integer is well-formed. */
export const UnixSeconds = Type.Integer({
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
});
/** Canonical base64url of exactly `bytes` bytes after a literal prefix. */
export const Base64url = (bytes: number, prefix = '') =>
  Type.String({ pattern: base64urlPattern(bytes, prefix) });
export const Ed25519PublicKey = Base64url(32);
export const X25519PublicKey = Base64url(32);
export const AccountPublicKey = Base64url(33);
/** 64 bytes: Ed25519 or account signature. */
export const Signature = Base64url(64);
/** `sha256:` and 43 characters. */
export const Sha256 = Base64url(32, 'sha256:');
export const deviceIdPattern = base64urlPattern(16, 'dev_');
export const DeviceId = Type.String({ pattern: deviceIdPattern });
export const MessageId = Base64url(16, 'msg_');
export const RelayId = Type.String({ pattern: '^0x[0-9a-f]{40}$' });
/** Shape of a Neo account ID; `checkAccountId` decides. */
export const AccountId = Type.String({
  pattern: '^neo:(0|[1-9][0-9]{0,9}):N[1-9A-HJ-NP-Za-km-z]{33}$',
});
/** `$type`: its value depends on the network's service word, `checkType` compares it. */
export const TypeName = Type.String({ minLength: 1 });

/** The schema that a large parsed value passed last: several checks of a call ask for the same. */
const passed = new WeakMap<object, TSchema>();

/**
 * Checks a value against a schema and narrows it.
 *
 * @throws ProtocolError `bad_request` naming the member at fault, below `path`
 * @example
 * checkSchema(SessionMode, value);
 */
export function checkSchema<S extends TSchema>(
  schema: S,
  value: unknown,
  path = '',
): asserts value is Static<S> {
  const isLarge = factsOf(value) !== undefined;
  if (isLarge && passed.get(value as object) === schema) return;
  const fault = schemaCheck(schema)(value);
  if (fault !== undefined) {
    throw badRequest([path, fault.at].filter((part) => part !== '').join('.'), fault.message);
  }
  if (isLarge) passed.set(value as object, schema);
}

/**
 * Checks a typed object: a JSON object whose `$type` is exactly the network's name for it (01 Y1,
 * Y7), without `$context` in it or in a typed object below (K2), then its schema.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const definition = { type: 'profile', schema: AccountProfile };
 * checkObject(network, definition, value);
 */
export function checkObject<S extends TSchema>(
  network: Network,
  definition: { readonly type: string; readonly schema: S },
  value: unknown,
  path = '',
): asserts value is Static<S> {
  checkTyped(network, definition.type, value, path);
  checkSchema(definition.schema, value, path);
}

/**
 * Checks a typed object but for its schema, as {@link checkObject} does.
 *
 * @throws ProtocolError `bad_request`
 */
export function checkTyped(
  network: Network,
  type: string,
  value: unknown,
  path: string,
): asserts value is JsonObject {
  if (!isJsonObject(value)) throw badRequest(path, 'expected an object');
  if (Object.hasOwn(value, '$context')) throw badRequest(path, '$context is never transmitted');
  if (value.$type !== network.type(type)) {
    throw badRequest(path, `$type is not ${network.type(type)}`);
  }
  checkNoContext(value, path);
}

/**
 * Refuses `$context` next to a `$type`, at any depth: no protocol object, known or not, has it on
 * the wire (01 K2). In values without a `$type` of their own it is a name like any other.
 *
 * @throws ProtocolError `bad_request`
 */
export function checkNoContext(value: JsonValue | undefined, path = ''): void {
  if (factsOf(value)?.hasContext === false) return;
  const at = findNode(value, isTypedWithContext);
  if (at !== undefined) throw badRequest(pathBelow(path, at), '$context is never transmitted');
}

const isTypedWithContext = (value: JsonValue | undefined) =>
  isJsonObject(value) && Object.hasOwn(value, '$type') && Object.hasOwn(value, '$context');

/**
 * Returns the way to the first node of a value that a test holds for, from its end to its
 * beginning. A request may have half a million nodes: only on the way back from a fault its place
 * is noted.
 */
function findNode(
  value: JsonValue | undefined,
  test: (node: JsonValue | undefined) => boolean,
): (string | number)[] | undefined {
  if (test(value)) return [];
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const at = findNode(value[index], test);
      if (at !== undefined) return [...at, index];
    }
  } else if (isJsonObject(value)) {
    // Without a list of the names: what was parsed inherits none.
    for (const name in value) {
      const at = findNode(value[name], test);
      if (at !== undefined) return [...at, name];
    }
  }
  return undefined;
}

function pathBelow(path: string, at: readonly (string | number)[]): string {
  return at.reduceRight<string>(memberPath, path);
}

/**
 * Refuses `$context` in a part of an object that has no `$type` of its own (01 K2).
 * @throws ProtocolError `bad_request`
 */
export function checkPart(part: object, path: string): void {
  if (Object.hasOwn(part, '$context')) throw badRequest(path, '$context is never transmitted');
}

/** Returns the path of a member below `path`, for error messages. */
export function memberPath(path: string, member: string | number): string {
  return path === '' ? String(member) : `${path}.${member}`;
}

/**
 * Refuses `null` anywhere in a value, unknown members included (01 J9, 03 reading notes).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkNoNull({ a: [null] }); // throws: a.0: null is not allowed
 */
export function checkNoNull(value: JsonValue | undefined, path = ''): void {
  const facts = factsOf(value);
  if (facts?.hasNull === false) return;
  if (facts !== undefined) throw badRequest(path, 'null is not allowed');
  const at = findNode(value, isNull);
  if (at !== undefined) throw badRequest(pathBelow(path, at), 'null is not allowed');
}

const isNull = (value: JsonValue | undefined) => value === null;

/**
 * Refuses a value with a node deeper than `maxDepth`; its root is at depth 0 (01 J5).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkDepth([[1]], 1); // throws: nested deeper than 1
 */
export function checkDepth(value: JsonValue, maxDepth: number): void {
  const depth = factsOf(value)?.depth;
  const isTooDeep = depth === undefined ? isDeeper(value, maxDepth) : depth > maxDepth;
  if (isTooDeep) throw badRequest('', `nested deeper than ${maxDepth}`);
}

function isDeeper(value: JsonValue | undefined, maxDepth: number): boolean {
  if (maxDepth < 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (isDeeper(item, maxDepth - 1)) return true;
    return false;
  }
  if (!isJsonObject(value)) return false;
  for (const name in value) if (isDeeper(value[name], maxDepth - 1)) return true;
  return false;
}

/**
 * Checks the size of a complete object in Canonical JSON and returns that text (01 §3).
 * @throws ProtocolError `request_too_large`
 */
export function checkCanonicalSize(object: JsonObject, maxBytes: number, path = ''): string {
  const text = canonicalJson(object);
  checkTextSize(text, maxBytes, path);
  return text;
}

/**
 * Checks the size of a complete object in Canonical JSON without making that text: members in any
 * order have as many bytes, and skipping the sort costs a fraction.
 *
 * @param object as the strict parser gives it
 * @throws ProtocolError `request_too_large`
 */
export function checkObjectSize(object: JsonObject, maxBytes: number, path = ''): void {
  checkTextSize(preparedTexts.get(object) ?? JSON.stringify(object), maxBytes, path);
}

/**
 * Checks the size of a canonical text and returns its bytes of UTF-8.
 * @throws ProtocolError `request_too_large`
 */
export function checkTextSize(text: string, maxBytes: number, path: string): number {
  const bytes = text.length <= maxBytes ? utf8Length(text) : text.length;
  if (bytes <= maxBytes) return bytes;
  throw new ProtocolError('request_too_large', `${path || 'object'}: over ${maxBytes} bytes`);
}

/**
 * Checks a user-visible text: UTF-8 length, and not only white space. The empty text passes if
 * `allowEmpty` is set (01 P5, T1, T2).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkText('Ann', { maxBytes: limits.nicknameBytes, allowEmpty: false }, 'nickname');
 */
export function checkText(
  text: string,
  rule: { readonly maxBytes?: number; readonly allowEmpty: boolean },
  path: string,
): void {
  if (rule.maxBytes !== undefined && utf8Length(text) > rule.maxBytes) {
    throw badRequest(path, `over ${rule.maxBytes} bytes`);
  }
  if (text === '' ? !rule.allowEmpty : isOnlyWhitespace(text)) {
    throw badRequest(path, 'only white space');
  }
}

/**
 * Checks canonical base64url of any length from `minBytes` on.
 * @throws ProtocolError `bad_request`
 */
export function checkBase64url(text: string, minBytes: number, path: string): void {
  const length = base64urlLength(text);
  if (length === undefined || length < minBytes) {
    throw badRequest(path, `expected canonical base64url of at least ${minBytes} bytes`);
  }
}
