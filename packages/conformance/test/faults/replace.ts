/** Replaces methods of a relay in this process, until the replacement is disposed of. */
import type { Relay } from '@posthouse/relay';

/** A fault, and the check that must find it. */
export interface SeededFault {
  readonly fault: string;
  /** ID of the check. */
  readonly check: string;
  readonly seed: (relay: Relay) => Disposable;
}

type MethodOf<T, K extends keyof T> = Extract<T[K], (...args: never[]) => unknown>;

/** Replaces a method of every instance of a class. */
export function replace<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  wrap: (original: MethodOf<T, K>) => MethodOf<T, K>,
): Disposable {
  const original = prototype[name] as MethodOf<T, K>;
  prototype[name] = wrap(original);
  return {
    [Symbol.dispose]() {
      prototype[name] = original;
    },
  };
}

/** Combines replacements. */
export function all(...parts: readonly Disposable[]): Disposable {
  const stack = new DisposableStack();
  for (const part of parts) stack.use(part);
  return stack;
}
