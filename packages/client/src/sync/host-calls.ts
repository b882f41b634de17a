/** What groups and channels have in common: a host that is not the home relay, with calls of its own. */
import { limits, type MethodName, type ParamsOf, type ResultOf, utf8 } from '@posthouse/protocol';
import type { Link } from '../connect/authenticated-connection.ts';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { AccountCore } from '../core.ts';
import {
  type ClientError,
  isClientError,
  isRefusal,
  RelayMisbehaviour,
  RelayUnreachable,
} from '../errors.ts';

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
export async function callForPage<M extends MethodName>(
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
export function isSilence(error: unknown): error is ClientError {
  return (
    error instanceof RelayUnreachable || isRefusal(error, 'rate_limited', 'temporarily_unavailable')
  );
}

/** The two sets a connection can subscribe (02 §13). */
const kinds = {
  groups: {
    limit: 'max_group_subscriptions',
    subscribe: (connection: RelayConnection, ids: readonly string[], signal: AbortSignal) =>
      connection.call('group.subscribe', { group_ids: [...ids] }, { signal }),
    refused: 'group_ids',
  },
  channels: {
    limit: 'max_channel_subscriptions',
    subscribe: (connection: RelayConnection, ids: readonly string[], signal: AbortSignal) =>
      connection.call('channel.subscribe', { channel_ids: [...ids] }, { signal }),
    refused: 'channel_ids',
  },
} as const;

/**
 * Subscribes groups or channels of one host on the connection's present link. Those the host
 * refuses are left out, those over its limit are read without hints; over HTTPS there are no hints
 * at all.
 *
 * @returns the link that was subscribed, and whether all of them were
 */
export async function subscribeHosted(
  connection: RelayConnection,
  kind: keyof typeof kinds,
  { ids, signal }: { readonly ids: readonly string[]; readonly signal: AbortSignal },
): Promise<{ readonly link: Link; readonly isWhole: boolean }> {
  const { limit, subscribe, refused } = kinds[kind];
  const link = await connection.link(signal);
  if (link.channel.kind !== 'websocket') return { link, isWhole: false };
  const { limits } = await connection.call('relay.info', {}, { signal });
  let wanted = ids.slice(0, limits[limit] ?? 0);
  for (;;) {
    try {
      await subscribe(connection, wanted, signal);
      return { link, isWhole: wanted.length === ids.length };
    } catch (error) {
      // It hosts none any more, which shows when they are read.
      if (isClientError(error, 'no_relay')) return { link, isWhole: false };
      const unavailable = refusedIds(error, refused);
      const left = wanted.filter((id) => !unavailable.has(id));
      // What cannot be read shows by itself when it is read.
      if (left.length === wanted.length) {
        if (!isRefusal(error, 'bad_request', 'not_found', 'forbidden')) throw error;
        return { link, isWhole: false };
      }
      wanted = left;
    }
  }
}

function refusedIds(error: unknown, member: string): ReadonlySet<unknown> {
  if (!isClientError(error) || !isRefusal(error, 'not_found', 'forbidden')) return new Set();
  const ids = error.data?.[member];
  return new Set(Array.isArray(ids) ? ids : []);
}
