/** Calls to hosts of groups and channels, over the transport that fits their size (05 §12.2). */
import { limits, type MethodName, type ParamsOf, type ResultOf, utf8 } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { type ClientError, isRefusal, RelayMisbehaviour, RelayUnreachable } from '../errors.ts';

interface HostCall<M extends MethodName> {
  readonly method: M;
  readonly params: ParamsOf<M>;
  readonly signal: AbortSignal;
}

/** Upper bound of a request's bytes around its parameters. */
const requestFrame = 256;

/**
 * Calls a host; over HTTPS if the parameters exceed a WebSocket message (05 §12.2).
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function callHost<M extends MethodName>(
  core: AccountCore,
  relayId: string,
  { method, params, signal }: HostCall<M>,
): Promise<ResultOf<M>> {
  const bytes = utf8(JSON.stringify(params)).length + requestFrame;
  const isLarge = bytes > limits.webSocketMessageBytes;
  const connection = isLarge ? core.relayOverHttp(relayId) : core.relay(relayId);
  return await connection.call(method, params, { signal });
}

/**
 * Reads a page from a host; over HTTPS if the page exceeds a WebSocket message (05 §12.2).
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function callPage<M extends MethodName>(
  core: AccountCore,
  relayId: string,
  { method, params, signal }: HostCall<M>,
): Promise<ResultOf<M>> {
  const relay = core.relay(relayId);
  try {
    // A page that does not fit does not fit the next time either.
    return await relay.call(method, params, { signal, repeat: 'unsent' });
  } catch (error) {
    if (error instanceof RelayUnreachable) return await relay.call(method, params, { signal });
    const isTooLarge =
      isRefusal(error, 'internal_error') ||
      (error instanceof RelayMisbehaviour && error.reason === 'oversized_response');
    if (!isTooLarge) throw error;
    return await core.relayOverHttp(relayId).call(method, params, { signal });
  }
}

/**
 * Returns the error of a request for what comes after a position. `bad_request` has one cause then:
 * the position is above the host's head, so the host lost what it had given (05 §12.8, 06 §8.11).
 */
export function asRollback(
  error: unknown,
  reason: 'group_rollback' | 'channel_rollback',
  { method, lost = 'events' }: { readonly method: MethodName; readonly lost?: string },
): unknown {
  if (!isRefusal(error, 'bad_request')) return error;
  return new RelayMisbehaviour(reason, `the host lost ${lost} it had given`, {
    method,
    cause: error,
  });
}

/**
 * Whether an error says that the host is unavailable for every request. Other errors may concern
 * only the one group or channel of the request.
 */
export function isHostUnavailable(error: unknown): error is ClientError {
  return (
    error instanceof RelayUnreachable || isRefusal(error, 'rate_limited', 'temporarily_unavailable')
  );
}
