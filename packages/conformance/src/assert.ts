/** What the protocol says and a check found to be otherwise. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Why a check says nothing about this relay: it is set up so that the rule cannot be seen. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/**
 * Ends the check with a {@link Violation} unless the condition holds.
 * @param what is expected, and behind `not` what was found: people read it behind `expected:`
 * @example
 * demand(answer.ok, 'a valid state is accepted');
 */
export function assertConforms(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Violation(what);
}
