import {
  currentMember,
  type GroupMember,
  isGroupManager,
  ProtocolError,
} from '@posthouse/protocol';
import { type Caller, requireCaller } from '../../accounts/index.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { Reader } from '../../storage/types.ts';
import { type LoadedGroup, loadGroup } from './load-group.ts';

/** The calling device of a member. */
export interface CallingMember {
  readonly caller: Caller;
  readonly group: LoadedGroup;
  readonly member: GroupMember;
}

/**
 * The calling device, of an account that is a member of the group and not banned.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
export async function requireMember(
  tx: Reader,
  session: DeviceSession,
  { groupId, now }: { readonly groupId: string; readonly now: number },
): Promise<CallingMember> {
  const caller = await requireCaller(tx, session, now);
  const group = await loadGroup(tx, groupId, [session.account]);
  return { caller, group, member: currentMember(group.view, session.account) };
}

/**
 * As {@link requireMember}, for what the owner alone may do.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
export async function requireOwner(
  tx: Reader,
  session: DeviceSession,
  place: { readonly groupId: string; readonly now: number },
): Promise<CallingMember> {
  const calling = await requireMember(tx, session, place);
  if (calling.member.role === 'owner') return calling;
  throw new ProtocolError('forbidden', 'the account is not the owner');
}

/**
 * As {@link requireMember}, for what owner and administrators alone may do.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
export async function requireManager(
  tx: Reader,
  session: DeviceSession,
  place: { readonly groupId: string; readonly now: number },
): Promise<CallingMember> {
  const calling = await requireMember(tx, session, place);
  if (isGroupManager(calling.member.role)) return calling;
  throw new ProtocolError('forbidden', 'the account is neither owner nor administrator');
}
