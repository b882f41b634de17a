/** What is logged of the operator's blocks. */
import type { Logger } from 'pino';

interface Observed {
  readonly log: Logger;
}

/** Records that a block ended by itself. */
export function blockEnded(
  { log }: Observed,
  { kind, id }: { readonly kind: string; readonly id: string },
): void {
  log.info({ [kind]: id }, `block of ${kind} ended`);
}
