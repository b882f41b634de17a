import { limits } from '../limits.ts';
import { JsonError } from './json-error.ts';
import { Parser } from './parser.ts';
import type { JsonValue } from './types.ts';

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
  const parser = new Parser(text, maxDepth, false);
  parser.run(text.length);
  return parser.value as JsonValue;
}

/** @internal UTF-16 units of one step: about 0.1 ms of an ordinary text, 0.7 of the worst one. */
export const stepLength = 2_048;

/**
 * Parses as {@link parseJson} does, in steps: after each, the caller may do other work. For large
 * texts on an event loop that has other callers.
 *
 * @throws JsonError what {@link parseJson} throws, at the step that meets it
 * @example
 * const steps = parseJsonInSteps('[1,2]');
 * let step = steps.next();
 * while (step.done !== true) step = steps.next();
 * console.log(step.value); // [1, 2]
 */
export function* parseJsonInSteps(
  text: string,
  { maxDepth = limits.jsonDepth, length = stepLength } = {},
): Generator<undefined, JsonValue, undefined> {
  const parser = new Parser(text, maxDepth, true);
  for (let end = length; !parser.run(end); end += length) yield;
  return parser.value as JsonValue;
}
