/**
 * Canonical texts of large values that were formatted in steps, for as long as the values are in use.
 * Parsed values never change.
 */

/** A member of an object: its name, and the canonical text of its value. */
export type PreparedMember = readonly [name: string, text: string];

/** By array or object. */
export const preparedTexts = new WeakMap<object, string>();
/** By object, in canonical order. */
export const preparedMembers = new WeakMap<object, readonly PreparedMember[]>();
