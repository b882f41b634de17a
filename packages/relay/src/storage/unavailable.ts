import { ProtocolError } from '@posthouse/protocol';

/**
 * Creates the error of a call that storage cannot serve now: `temporarily_unavailable`. It has no
 * hint when to try again, which only `rate_limited` may have (02 §5).
 */
export function unavailable(
  message: string,
  options: { readonly cause?: unknown } = {},
): ProtocolError {
  return new ProtocolError('temporarily_unavailable', message, options);
}
