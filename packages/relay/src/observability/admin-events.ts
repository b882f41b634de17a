/** Events of what operators ask and change. */
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log'>;

/** Records a change by the operator; kept as an audit trail. `subject` is an ID, no secret. */
export function changedByOperator(
  { log }: Observed,
  facts: { readonly verb: string; readonly subject: string; readonly by: 'command' | 'http' },
): void {
  log.warn(facts, 'changed by the operator');
}

/** Records a request to the admin interface without its token. */
export function adminTokenRefused({ log }: Observed, address: string): void {
  log.warn({ address }, 'the admin interface refused a wrong token, or none');
}

/** Records that a verb failed for a reason that its caller is not told. */
export function verbFailed({ log }: Observed, verb: string, error: unknown): void {
  log.error({ verb, err: error }, 'the admin interface failed');
}
