/** Which calls are refused while the database's disk has too little room. */
import type { MethodDefinition, MethodName } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { Session } from '../sessions/session.ts';
import { unavailable } from '../storage/unavailable.ts';

/** Signing in writes a challenge and a session: people read what they have. */
const signIn: readonly MethodName[] = [
  'auth.challenge',
  'auth.device.verify',
  'auth.account.verify',
];

/**
 * Checks that the disk has room for a call that writes. Reads, signing in, and what removes or ends
 * something (HTTP `DELETE`) go on, and so does a device that publishes the device state of its
 * account, which is how a lost device is removed.
 *
 * @throws ProtocolError `temporarily_unavailable`
 */
export function checkDiskRoom(
  context: Pick<RelayContext, 'disk'>,
  call: {
    readonly method: MethodName;
    readonly definition: MethodDefinition;
    readonly session: Session | undefined;
  },
): void {
  const { method, definition, session } = call;
  const isWrite = definition.http.some((verb) => ['POST', 'PUT', 'PATCH'].includes(verb));
  if (!isWrite || definition.http.includes('GET') || signIn.includes(method)) return;
  if (method === 'device.state.publish' && session?.mode === 'device') return;
  checkRoomForWrite(context);
}

/** @throws ProtocolError `temporarily_unavailable` while the database's disk has too little room */
export function checkRoomForWrite({ disk }: Pick<RelayContext, 'disk'>): void {
  if (!disk.isLow('data')) return;
  throw unavailable(
    'the disk of the relay is nearly full: it stores nothing new until there is room',
  );
}
