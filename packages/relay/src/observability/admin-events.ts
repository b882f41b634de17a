/** Events of what operators ask and change. */
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log'>;

/** A change by the operator. */
interface Change {
  readonly verb: string;
  /** An ID, no secret. */
  readonly subject?: string;
  /** What was changed, if it is an address or a network. */
  readonly address?: string;
  readonly by: 'command' | 'http';
}

/** Records a change by the operator; kept as an audit trail. */
export function changedByOperator({ log }: Observed, facts: Change): void {
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
