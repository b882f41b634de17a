/** Log lines of the limits of a day. */
import type { RelayContext } from '../context.ts';

/** Records that bytes of a day could not be saved; it is tried again, and has one line until it succeeds. */
export function dailyBytesNotSaved({ log }: Pick<RelayContext, 'log'>, error: unknown): void {
  log.warn({ err: error }, 'bytes of the day not saved: they count in this process only');
}
