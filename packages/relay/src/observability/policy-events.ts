/** Events of the operator's program that decides about accounts, posts and groups. */
import type { PolicyQuestion, RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log' | 'metrics'>;

/** Records that the program was started. */
export function policyStarted({ log, metrics }: Observed, pid: number | undefined): void {
  metrics.set('policy_failing_now', 0);
  log.info({ pid }, 'policy: the program runs');
}

/** Records that the program ended, or was ended, and when it is started again. */
export function policyEnded(
  { log, metrics }: Observed,
  { reason, seconds }: { readonly reason: string; readonly seconds: number },
): void {
  metrics.count('policy_ended');
  metrics.set('policy_failing_now', 1);
  log.warn({ reason, seconds }, 'policy: the program ended and is started again');
}

/** Records a line that the program wrote to its standard error. */
export function policyLine(
  { log }: Pick<Observed, 'log'>,
  written: { readonly line: string; readonly isCut: boolean; readonly dropped: number },
): void {
  const { line, isCut, dropped } = written;
  const more = { ...(isCut && { isCut }), ...(dropped > 0 && { dropped }) };
  log.info({ line, ...more }, 'policy: the program says');
}

/** Records a question and its answer; `undefined` if there was none. */
export function policyAsked(
  { metrics }: Pick<Observed, 'metrics'>,
  asked: {
    readonly ask: PolicyQuestion['ask'];
    readonly isAllowed: boolean | undefined;
    readonly milliseconds: number;
  },
): void {
  const { ask, isAllowed, milliseconds } = asked;
  const outcome = isAllowed === undefined ? 'failed' : isAllowed ? 'allowed' : 'refused';
  metrics.count('policy_questions', { ask, outcome });
  metrics.observe('policy_seconds', { ask }, milliseconds / 1_000);
  metrics.set('policy_failing_now', isAllowed === undefined ? 1 : 0);
}
