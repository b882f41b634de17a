import { isJsonObject, type JsonObject, parseJson } from '@posthouse/protocol/json';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { WssCaller } from './caller.ts';

/** A notification as it was received. */
export interface Notification {
  readonly method: string;
  readonly params: JsonObject;
}

/** Lists the queued notifications of a module on an account's WSS connection. */
export function pendingNotifications(
  { caller }: Pick<TestAccount, 'caller'>,
  module: 'group' | 'channel',
): readonly Notification[] {
  return (caller as WssCaller).socket.pending.flatMap((text) => {
    const message = parseJson(text);
    if (!isJsonObject(message) || typeof message.method !== 'string') return [];
    if (!message.method.startsWith(`${module}.`)) return [];
    return [{ method: message.method, params: message.params as JsonObject }];
  });
}
