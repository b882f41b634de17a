/** Events of which accounts are taken. */
import type { RelayContext } from '../context.ts';

/** Records at start that a relay without accounts lets none in: the operator has to give a right first. */
export function noWayIn({ log }: Pick<RelayContext, 'log'>, registration: string): void {
  const cure =
    registration === 'invite'
      ? 'create an invite: posthouse invite create'
      : 'let the first one in: posthouse account allow <account>';
  log.warn({ registration }, `no account is here, and none can come: ${cure}`);
}
