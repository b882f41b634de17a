import type { Capability } from '@posthouse/protocol';
import type { TestContext } from './fixtures/test-context.ts';
import { definitionOf } from './transport/answer.ts';
import type { TransportName } from './transport/caller.ts';

/** How a check reaches the relay under test: as a client, or as another relay with one. */
export type CheckTransport = TransportName | 'relay';

/** One rule a relay must follow, and how to test it. */
export interface Check {
  /** Stable name: method, a slash, a short word. */
  readonly id: string;
  /** The method under test, or a topic such as `transport` if it is about no single method. */
  readonly method: string;
  /** What the relay must do, as a plain fact. */
  readonly title: string;
  /** Chapter and section. */
  readonly source: string;
  /** The module of the method; a relay that does not declare it is not checked. */
  readonly capability?: Capability;
  /** Waits for the end of a period that the relay sets; not applicable if it lasts for days. */
  readonly waitsForPeriod?: boolean;
  /** Needs the registry's relays for itself, or restarts the relay: no other check runs meanwhile. */
  readonly isAlone?: boolean;
  /** Transports the check runs on, once on each. */
  readonly transports: readonly CheckTransport[];
  /** Performs the exchange; throws a {@link Violation} if the relay breaks the rule. */
  run(context: TestContext): Promise<void>;
}

interface CheckText {
  readonly source: string;
  readonly title: string;
  readonly transports?: readonly CheckTransport[];
  readonly waitsForPeriod?: boolean;
  readonly isAlone?: boolean;
}

/**
 * Collects the checks of one method. By default a check runs on every transport the method has.
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
  const definition = definitionOf(method);
  const capability = definition?.capability;
  const module = capability === undefined ? {} : { capability };
  const allTransports: readonly TransportName[] =
    definition?.http.length === 0 ? ['wss'] : ['https', 'wss'];
  return {
    list,
    check(word, { transports = allTransports, ...text }, run) {
      list.push({ id: `${method}/${word}`, method, transports, ...text, ...module, run });
    },
  };
}
