/** What a call may store, as the limits of a day count it (02 §18). */
import type { MethodDefinition, MethodName } from '@posthouse/protocol';
import { isJsonObject, type JsonValue } from '@posthouse/protocol/json';
import type { StoredBytes } from '../context.ts';
import type { Session } from '../sessions/session.ts';

/** What members and moderators put into a group or channel, where others have a part of the day too. */
const content: readonly MethodName[] = ['group.message.send', 'channel.post', 'channel.post.edit'];

/** Returns what a call may store; `undefined` for one that reads, and for one without a session. */
export function storedBytes(call: {
  readonly method: MethodName;
  readonly definition: MethodDefinition;
  readonly session: Session | undefined;
  readonly params: JsonValue;
  readonly bytes: number;
}): StoredBytes | undefined {
  const { method, definition, session, params, bytes } = call;
  const { http } = definition;
  if (session === undefined || http.length === 0 || http.includes('GET')) return undefined;
  const { group_id: group, channel_id: channel } = isJsonObject(params) ? params : {};
  // A lost device is removed by a device's session, a member by a ban: both have to be possible.
  const removes =
    http.includes('DELETE') ||
    method === 'group.member.ban' ||
    (method === 'device.state.publish' && session.mode === 'device');
  return {
    account: session.account,
    group: typeof group === 'string' ? group : undefined,
    channel: typeof channel === 'string' ? channel : undefined,
    bytes,
    isRefused: !removes,
    isContent: content.includes(method),
  };
}
