import { type Capability, type MethodDefinition, methods } from '@posthouse/protocol';
import type { TestContext } from './fixtures/test-context.ts';
import type { TransportName } from './transport/caller.ts';

/** One thing a relay must do, and how to see whether it does. */
export interface Check {
  /** Stable name: method, a slash, a short word. */
  readonly id: string;
  /** The method under test, or a topic such as `transport` where it is none. */
  readonly method: string;
  /** What must hold. */
  readonly title: string;
  /** Chapter and section. */
  readonly source: string;
  /** The module the method belongs to: relays that do not declare it are not checked. */
  readonly capability?: Capability;
  /** Waits for the end of a period the relay sets: of those that last days it says nothing. */
  readonly waitsForPeriod?: boolean;
  /** Transports it runs on; each run must end the same way. */
  readonly transports: readonly TransportName[];
  /** Throws where the relay does otherwise. */
  run(context: TestContext): Promise<void>;
}

interface CheckText {
  readonly source: string;
  readonly title: string;
  readonly transports?: readonly TransportName[];
  readonly waitsForPeriod?: boolean;
}

/**
 * The checks of one method, written as a list.
 *
 * @example
 * const { check, list } = checksOf('relay.info');
 * check('shape', { source: '02 §11.2', title: 'answers name, time and limits' }, async (context) => {
 *   await context.expectOk(await context.anonymous(), 'relay.info');
 * });
 */
export function checksOf(method: string): {
  check(word: string, text: CheckText, run: (context: TestContext) => Promise<void>): void;
  readonly list: Check[];
} {
  const list: Check[] = [];
  const capability = capabilityOf(method);
  const module = capability === undefined ? {} : { capability };
  return {
    list,
    check(word, { transports = ['https', 'wss'], ...text }, run) {
      list.push({ id: `${method}/${word}`, method, transports, ...text, ...module, run });
    },
  };
}

function capabilityOf(method: string): Capability | undefined {
  const all = methods as Readonly<Record<string, MethodDefinition>>;
  return Object.hasOwn(all, method) ? all[method]?.capability : undefined;
}
