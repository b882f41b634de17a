import { isJsonObject, type JsonObject, parseJson } from '@posthouse/protocol';
import type { Resident } from '../fixtures/test-context.ts';
import type { WssCaller } from './caller.ts';

/** A notification as it came. */
export interface Hint {
  readonly method: string;
  readonly params: JsonObject;
}

/**
 * The notifications of a module that somebody has on the connection of their caller, and that
 * nobody took.
 */
export function hintsOf(
  { caller }: Pick<Resident, 'caller'>,
  module: 'group' | 'channel',
): readonly Hint[] {
  return (caller as WssCaller).socket.pending.flatMap((text) => {
    const message = parseJson(text);
    if (!isJsonObject(message) || typeof message.method !== 'string') return [];
    if (!message.method.startsWith(`${module}.`)) return [];
    return [{ method: message.method, params: message.params as JsonObject }];
  });
}
