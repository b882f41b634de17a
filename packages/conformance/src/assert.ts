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
