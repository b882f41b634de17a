import { canonicalJson, type JsonValue } from '@posthouse/protocol/json';

/** A rule of the protocol that the relay breaks. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Thrown if a check cannot be made on this relay, because of the relay's configuration. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/**
 * Asserts that the relay conforms to a rule.
 * @param what the expected fact, then `not` and what the relay did; printed after `expected: `
 * @throws Violation if the condition is false
 * @example
 * assertConforms(answer.ok, 'a valid state is accepted');
 */
export function assertConforms(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Violation(what);
}

/** Longest text of a value in a message. */
const shownLength = 200;

function show(value: unknown): string {
  const text = value === undefined ? 'none' : JSON.stringify(value);
  return text.length > shownLength ? `${text.slice(0, shownLength)}...` : text;
}

/**
 * Asserts that a value of the relay is the expected one; objects are compared as Canonical JSON.
 * @param what names the value; printed as `expected: <what>: <expected>, not <found>`
 * @throws Violation if they differ
 * @example
 * assertEqual(page.events.length, 1, 'events on the page');
 */
export function assertEqual(found: unknown, expected: unknown, what: string): void {
  if (found === expected || (isObject(found) && isObject(expected) && isSame(found, expected))) {
    return;
  }
  throw new Violation(`${what}: ${show(expected)}, not ${show(found)}`);
}

function isObject(value: unknown): value is JsonValue {
  return typeof value === 'object' && value !== null;
}

function isSame(one: JsonValue, other: JsonValue): boolean {
  return canonicalJson(one) === canonicalJson(other);
}
