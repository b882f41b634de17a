/** The closed list of 25 white space code points for checks of user text (chapter 01, 2.4). */
const onlyWhitespace =
  /^[\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+$/;

/** Returns whether a nonempty text consists of white space alone (T1). The empty text does not. */
export function isOnlyWhitespace(text: string): boolean {
  return onlyWhitespace.test(text);
}
