/** What is logged of the operator's blocks. */
import type { Logger } from 'pino';

interface Observed {
  readonly log: Logger;
}

interface Blocked {
  readonly kind: string;
  readonly id: string;
}

/**
 * Records that the operator blocked an account, an address or a relay.
 * @param block.until Unix seconds; absent if the block lasts until it is removed
 */
export function blockAdded(
  { log }: Observed,
  { kind, id, until }: Blocked & { readonly until?: number | undefined },
): void {
  log.warn({ [kind]: id, ...(until !== undefined && { until }) }, `${kind} blocked`);
}

/** Records that the operator ended a block. */
export function blockRemoved({ log }: Observed, { kind, id }: Blocked): void {
  log.warn({ [kind]: id }, `${kind} unblocked`);
}

/** Records that a block ended by itself. */
export function blockEnded({ log }: Observed, { kind, id }: Blocked): void {
  log.info({ [kind]: id }, `block of ${kind} ended`);
}
