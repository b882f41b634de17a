/** What groups and channels have in common: a host that is not the home relay, with calls of its own. */
import { limits, type MethodName, type ParamsOf, type ResultOf, utf8 } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { type ClientError, isRefusal, RelayMisbehaviour, RelayUnreachable } from '../errors.ts';

interface HostCall<M extends MethodName> {
  readonly method: M;
  readonly params: ParamsOf<M>;
  readonly signal: AbortSignal;
}

/** Bytes of a request around its parameters, generously. */
const requestFrame = 256;

/**
 * Calls a host; with parameters that fit no WebSocket message over HTTPS (05 §12.2).
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
 * Reads a page from a host; one that fits no WebSocket message over HTTPS (05 §12.2).
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function callPage<M extends MethodName>(
  core: AccountCore,
  relayId: string,
  { method, params, signal }: HostCall<M>,
): Promise<ResultOf<M>> {
  const relay = core.relay(relayId);
  try {
    // What a relay has no room for it will have no room for the next time either.
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
 * Whether a host answers nothing for now, whatever it is asked. Anything else may be about the one
 * group or channel that was asked for.
 */
export function isHostUnavailable(error: unknown): error is ClientError {
  return (
    error instanceof RelayUnreachable || isRefusal(error, 'rate_limited', 'temporarily_unavailable')
  );
}
