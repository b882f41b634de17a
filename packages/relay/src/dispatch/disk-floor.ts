/** Which calls are refused while the database's disk has too little room. */
import type { MethodName } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { unavailable } from '../storage/unavailable.ts';
import { type CheckedCall, isRead, removes } from './writes.ts';

/** Signing in writes a challenge and a session: people read what they have. */
const signIn: readonly MethodName[] = [
  'auth.challenge',
  'auth.device.verify',
  'auth.account.verify',
];

/**
 * Checks that the disk has room for a call that writes. Reads, signing in, and what removes or ends
 * something go on.
 *
 * @throws ProtocolError `temporarily_unavailable`
 */
export function checkDiskRoom(context: Pick<RelayContext, 'disk'>, call: CheckedCall): void {
  if (isRead(call.definition) || signIn.includes(call.method) || removes(call)) return;
  checkRoomForWrite(context);
}

/** @throws ProtocolError `temporarily_unavailable` while the database's disk has too little room */
export function checkRoomForWrite({ disk }: Pick<RelayContext, 'disk'>): void {
  if (!disk.isLow('data')) return;
  throw unavailable(
    'the disk of the relay is nearly full: it stores nothing new until there is room',
  );
}
