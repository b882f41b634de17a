import { ProtocolError } from '@posthouse/protocol';

/** Seconds after which a caller may try again, unless more is known. */
const soon = 1;

/**
 * Creates the error of a call that storage cannot serve now: `temporarily_unavailable` with
 * `retry_after`.
 */
export function unavailable(
  message: string,
  { cause, retryAfter = soon }: { readonly cause?: unknown; readonly retryAfter?: number } = {},
): ProtocolError {
  const data = { retry_after: retryAfter };
  return new ProtocolError('temporarily_unavailable', message, { data, cause });
}
