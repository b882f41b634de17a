/** What a call may store, as the limits of a day count it (02 §18). */
import type { MethodName } from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import type { StoredBytes } from '../context.ts';
import { type CheckedCall, isRead, removes, replaces } from './writes.ts';

/**
 * What members and moderators put into a group or channel, where others have a part of the day too; by
 * the parameter that names it. The parameters of these methods were checked: it is an ID.
 */
const content: Partial<Record<MethodName, 'group_id' | 'channel_id'>> = {
  'group.message.send': 'group_id',
  'channel.post': 'channel_id',
  'channel.post.edit': 'channel_id',
};

/** Returns what a delivery of another relay may store; `undefined` for what is no delivery. */
export function deliveredBytes(
  relayId: string,
  request: { readonly method: string; readonly params: JsonValue; readonly bytes: number },
): StoredBytes | undefined {
  if (request.method !== 'message.deliver') return undefined;
  const { from, to } = (request.params as { readonly envelope: JsonObject }).envelope;
  return {
    ...{ account: from as string, relay: relayId, recipient: to as string },
    ...{ group: undefined, channel: undefined, bytes: request.bytes, isLimited: true },
  };
}

/**
 * Returns what a call may store; `undefined` for one that reads, that replaces what is stored, and for
 * one without a session.
 */
export function storedBytes(
  call: CheckedCall & { readonly params: JsonValue },
): StoredBytes | undefined {
  const { method, definition, session, params, bytes } = call;
  if (session === undefined || isRead(definition) || replaces(call)) return undefined;
  const name = content[method];
  const id = name && ((params as JsonObject)[name] as string);
  return {
    account: session.account,
    relay: session.mode === 'device' ? session.homeRelay : undefined,
    group: name === 'group_id' ? id : undefined,
    channel: name === 'channel_id' ? id : undefined,
    bytes,
    isLimited: !removes(call),
  };
}
