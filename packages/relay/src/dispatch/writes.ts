/** What a call does to storage, as its method tells it: which calls limits and a full disk never refuse. */
import type { MethodDefinition, MethodName } from '@posthouse/protocol';
import type { Session } from '../sessions/session.ts';

/** A call whose session and parameters passed the checks. */
export interface CheckedCall {
  readonly method: MethodName;
  readonly definition: MethodDefinition;
  readonly session: Session | undefined;
  /** Bytes of the request. */
  readonly bytes: number;
}

/**
 * Bytes of a ban that counts as a removal: a longer list of accounts, which need not exist, stores
 * more than it ends.
 */
const smallBan = 8_192;

/** Whether a method writes nothing: it has a `GET`, or subscribes a connection. */
export function isRead({ http }: MethodDefinition): boolean {
  return http.length === 0 || http.includes('GET');
}

/**
 * Whether a call removes or ends something: it must be possible at all times. A lost device is removed
 * by a device state that another device publishes, a member by a ban.
 */
export function removes(call: CheckedCall): boolean {
  const { method, definition, bytes } = call;
  // It ends a ban, and stores an event for good.
  if (method === 'group.member.unban') return false;
  return (
    definition.http.includes('DELETE') ||
    (method === 'group.member.ban' && bytes <= smallBan) ||
    replaces(call)
  );
}

/** Whether a call replaces what is stored: however often it is made, no more is stored. */
export function replaces({ method, session }: CheckedCall): boolean {
  return method === 'device.state.publish' && session?.mode === 'device';
}
