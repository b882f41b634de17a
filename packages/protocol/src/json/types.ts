/** Any JSON value of the protocol: integers only, no `undefined` (chapter 01, section 2). */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. Unknown members are kept. */
export interface JsonObject {
  readonly [name: string]: JsonValue | undefined;
}

/**
 * Returns whether a value is a JSON object: not `null`, not an array.
 *
 * @example
 * if (isJsonObject(value)) console.log(Object.keys(value));
 */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
