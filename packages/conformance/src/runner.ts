import { hasCapability } from '@posthouse/protocol';
import { NotApplicable, Violation } from './assert.ts';
import type { Check, CheckTransport } from './check.ts';
import { TestContext } from './fixtures/test-context.ts';
import type { Target } from './target.ts';

/** The result of one check on one transport. */
export interface Finding {
  readonly id: string;
  readonly method: string;
  readonly title: string;
  readonly source: string;
  readonly transport: CheckTransport;
  readonly outcome: 'passed' | 'failed' | 'not_applicable';
  /** Why the check failed, or why it does not apply to this relay. */
  readonly reason?: string;
}

/**
 * Selects the checks whose id starts with one of the prefixes; all if no prefix is given.
 *
 * @param beginWith leaves out the checks before this one
 * @throws Error if a prefix fits no check, or no selected check has the ID to begin with
 */
export function selectChecks(
  checks: readonly Check[],
  only: readonly string[] = [''],
  beginWith?: string,
): readonly Check[] {
  const wrong = only.find((prefix) => !checks.some(({ id }) => id.startsWith(prefix)));
  if (wrong !== undefined) throw new Error(`no check has an id that starts with ${wrong}`);
  const selected = checks.filter(({ id }) => only.some((prefix) => id.startsWith(prefix)));
  if (beginWith === undefined) return selected;
  const first = selected.findIndex(({ id }) => id === beginWith);
  if (first === -1) throw new Error(`no selected check is ${beginWith}`);
  return selected.slice(first);
}

/**
 * Runs checks one after another, each on all its transports, and yields each finding at once. After the
 * signal, it ends when the check under way has.
 */
export async function* runChecks(
  target: Target,
  selected: readonly Check[],
  signal?: AbortSignal,
): AsyncGenerator<Finding> {
  for (const check of selected) {
    for (const transport of check.transports) {
      if (signal?.aborted === true) return;
      yield await runCheck(target, check, transport);
    }
  }
}

/** Why the checks that need a relay of the kit are left out. */
const noSeat = 'the kit has no relay of its own: --listen, --certificate and --key are missing';

/** Runs one check on one transport, with accounts and connections of its own. */
export async function runCheck(
  target: Target,
  check: Check,
  transport: CheckTransport,
): Promise<Finding> {
  const { id, method, title, source } = check;
  const finding = { id, method, title, source, transport };
  try {
    if (transport === 'relay' && target.seats === undefined) throw new NotApplicable(noSeat);
    // What a check does as a client, next to a relay of the kit, it does over HTTPS.
    const asClient = transport === 'relay' ? 'https' : transport;
    await using context = await TestContext.open(target, asClient);
    const reason = notApplicableReason(context, check);
    if (reason !== undefined) return { ...finding, outcome: 'not_applicable', reason };
    await check.run(context);
    return { ...finding, outcome: 'passed' };
  } catch (error) {
    if (error instanceof NotApplicable) {
      return { ...finding, outcome: 'not_applicable', reason: error.message };
    }
    return { ...finding, outcome: 'failed', reason: reasonOf(error) };
  }
}

/** Describes a failure: the broken rule, or an unexpected error. */
function reasonOf(error: unknown): string {
  if (error instanceof Violation) return `expected: ${error.message}`;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Names what a check needs and the relay's verified descriptor does not declare. */
function notApplicableReason(context: TestContext, { capability }: Check): string | undefined {
  if (context.transport === 'wss' && context.wssUrl === undefined) {
    return 'the relay lists no WSS address';
  }
  if (capability === undefined || hasCapability(context.descriptor, capability)) return undefined;
  return `the relay does not declare ${capability}`;
}
