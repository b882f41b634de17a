/** What a call does to storage, as its method tells it: which calls limits and a full disk never refuse. */
import type { MethodDefinition, MethodName } from '@posthouse/protocol';
import type { Session } from '../sessions/session.ts';

/** A call whose session and parameters passed the checks. */
export interface CheckedCall {
  readonly method: MethodName;
  readonly definition: MethodDefinition;
  readonly session: Session | undefined;
}

/** Whether a method writes nothing: it has a `GET`, or subscribes a connection. */
export function isRead({ http }: MethodDefinition): boolean {
  return http.length === 0 || http.includes('GET');
}

/**
 * Whether a call removes or ends something: it must be possible at all times. A lost device is removed
 * by a device state that another device publishes, a member by a ban.
 */
export function removes({ method, definition, session }: CheckedCall): boolean {
  return (
    definition.http.includes('DELETE') ||
    method === 'group.member.ban' ||
    (method === 'device.state.publish' && session?.mode === 'device')
  );
}
