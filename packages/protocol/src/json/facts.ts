/** What the parser noticed about an array or object, so that no check has to walk through it again. */
export interface JsonFacts {
  /** Whether there is a `null` in it, at any depth. */
  readonly hasNull: boolean;
  /** Whether an object in it, or it itself, has a member `$context`. */
  readonly hasContext: boolean;
  /** Depth of its deepest value; its own is 0. */
  readonly depth: number;
  /** Values in the arrays that are its members. */
  readonly items: number;
}

const known = new WeakMap<object, JsonFacts>();

/**
 * Returns what is known about a large array or object that `parseJsonInSteps` parsed; `undefined` for
 * all others.
 *
 * @example
 * if (factsOf(params)?.hasNull === false) console.log('no null anywhere');
 */
export function factsOf(value: unknown): JsonFacts | undefined {
  return typeof value === 'object' && value !== null ? known.get(value) : undefined;
}

/** @internal Notes facts about a parsed value that nothing changes any more. */
export function keepFacts(value: object, facts: JsonFacts): void {
  known.set(value, facts);
}
