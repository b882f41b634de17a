import type { TransportName } from './caller.ts';
import type { Stage } from './stage.ts';

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
  /** Transports it runs on; each run must end the same way. */
  readonly transports: readonly TransportName[];
  /** Throws where the relay does otherwise. */
  run(stage: Stage): Promise<void>;
}

interface CheckText {
  readonly source: string;
  readonly title: string;
  readonly transports?: readonly TransportName[];
}

/**
 * The checks of one method, written as a list.
 *
 * @example
 * const { check, list } = checksOf('relay.info');
 * check('shape', { source: '02 §11.2', title: 'answers name, time and limits' }, async (stage) => {
 *   await stage.succeed(await stage.visitor(), 'relay.info');
 * });
 */
export function checksOf(method: string): {
  check(word: string, text: CheckText, run: (stage: Stage) => Promise<void>): void;
  readonly list: Check[];
} {
  const list: Check[] = [];
  return {
    list,
    check(word, { source, title, transports = ['https', 'wss'] }, run) {
      list.push({ id: `${method}/${word}`, method, title, source, transports, run });
    },
  };
}
