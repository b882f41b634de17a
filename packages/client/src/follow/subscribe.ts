/** Subscribing groups and channels at their host (02 §13). */
import type { RelayConnection } from '../connect/relay-connection.ts';
import { isClientError, isRefusal } from '../errors.ts';

/** The two kinds of subscriptions of a connection (02 §13). */
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
 * Subscribes groups or channels of one host on the current connection. IDs that the host refuses
 * are left out, IDs over its limit are read without hints; over HTTPS there are no hints at all.
 *
 * @returns whether all of them are subscribed
 */
export async function subscribeAtHost(
  connection: RelayConnection,
  kind: keyof typeof kinds,
  { ids, signal }: { readonly ids: readonly string[]; readonly signal: AbortSignal },
): Promise<boolean> {
  const { limit, subscribe, refused } = kinds[kind];
  const { wire } = await connection.authenticated(signal);
  if (wire.kind !== 'websocket') return false;
  const { limits } = await connection.call('relay.info', {}, { signal });
  let wanted = ids.slice(0, limits[limit] ?? 0);
  for (;;) {
    try {
      await subscribe(connection, wanted, signal);
      return wanted.length === ids.length;
    } catch (error) {
      // The relay hosts none any more; reading them reports it.
      if (isClientError(error, 'no_relay')) return false;
      const unavailable = refusedIds(error, refused);
      const rest = wanted.filter((id) => !unavailable.has(id));
      // Reading reports what the host refuses.
      if (rest.length === wanted.length) {
        if (!isRefusal(error, 'bad_request', 'not_found', 'forbidden')) throw error;
        return false;
      }
      wanted = rest;
    }
  }
}

function refusedIds(error: unknown, member: string): ReadonlySet<unknown> {
  if (!isClientError(error) || !isRefusal(error, 'not_found', 'forbidden')) return new Set();
  const ids = error.data?.[member];
  return new Set(Array.isArray(ids) ? ids : []);
}
