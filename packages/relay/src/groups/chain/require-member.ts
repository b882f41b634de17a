import {
  currentMember,
  type GroupMember,
  isGroupManager,
  ProtocolError,
} from '@posthouse/protocol';
import type { Reader } from '../../storage/types.ts';
import type { GroupCall } from './group-transactions.ts';
import { type LoadedGroup, loadGroup } from './load-group.ts';

/** A group with the calling account as its member. */
export interface Membership {
  readonly group: LoadedGroup;
  readonly member: GroupMember;
}

/**
 * Requires that the calling account is a member of the group and not banned.
 *
 * @param targets other accounts that the call is about, loaded with the group
 * @throws ProtocolError `not_found`, `forbidden`
 */
export async function requireMember(
  tx: Reader,
  { session, groupId }: GroupCall,
  targets: readonly string[] = [],
): Promise<Membership> {
  const group = await loadGroup(tx, groupId, [session.account, ...targets]);
  return { group, member: currentMember(group.view, session.account) };
}

/**
 * As {@link requireMember}, for what only the owner may do.
 * @throws ProtocolError `not_found`, `forbidden`
 */
export async function requireOwner(
  tx: Reader,
  call: GroupCall,
  targets: readonly string[] = [],
): Promise<Membership> {
  const membership = await requireMember(tx, call, targets);
  if (membership.member.role === 'owner') return membership;
  throw new ProtocolError('forbidden', 'the account is not the owner');
}

/**
 * As {@link requireMember}, for what only the owner and administrators may do.
 * @throws ProtocolError `not_found`, `forbidden`
 */
export async function requireManager(tx: Reader, call: GroupCall): Promise<Membership> {
  const membership = await requireMember(tx, call);
  if (isGroupManager(membership.member.role)) return membership;
  throw new ProtocolError('forbidden', 'the account is neither owner nor administrator');
}
