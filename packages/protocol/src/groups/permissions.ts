/**
 * The table of permissions (05 §6): which role may do what. Bans and membership are checked before.
 */
import type { GroupInvitePolicy, GroupRole } from './fields.ts';

/**
 * Returns whether a role is above ordinary members: owner or administrator.
 *
 * @example
 * isGroupManager('administrator'); // true
 */
export function isGroupManager(role: GroupRole): boolean {
  return role === 'owner' || role === 'administrator';
}

/**
 * Returns whether a role may create an invitation of this form now (05 §4.1, §8.1).
 * @example
 * mayCreateInvite('member', 'members_targeted', 'public'); // false
 */
export function mayCreateInvite(
  role: GroupRole,
  policy: GroupInvitePolicy,
  form: 'targeted' | 'public',
): boolean {
  if (isGroupManager(role) || policy === 'members_shareable') return true;
  return policy === 'members_targeted' && form === 'targeted';
}

/**
 * Returns whether a member may see an invitation: ordinary members only those they issued.
 *
 * @example
 * mayViewInvite('member', false); // false
 */
export function mayViewInvite(role: GroupRole, isIssuer: boolean): boolean {
  return isGroupManager(role) || isIssuer;
}

/**
 * Returns whether a member may revoke an invitation: administrators too only those they issued.
 *
 * @example
 * mayRevokeInvite('administrator', false); // false
 */
export function mayRevokeInvite(role: GroupRole, isIssuer: boolean): boolean {
  return role === 'owner' || isIssuer;
}

/**
 * Returns whether a role may remove a member of another role; no member can remove itself with it.
 *
 * @example
 * mayRemoveMember('administrator', 'administrator'); // false
 */
export function mayRemoveMember(role: GroupRole, target: GroupRole): boolean {
  if (target === 'owner') return false;
  return role === 'owner' || (role === 'administrator' && target === 'member');
}

/**
 * Returns whether a role may ban an account; `target` is absent for nonmembers.
 *
 * @example
 * mayBanAccount('administrator', undefined); // true
 */
export function mayBanAccount(role: GroupRole, target: GroupRole | undefined): boolean {
  return target === undefined ? isGroupManager(role) : mayRemoveMember(role, target);
}

/** One member as seen by another, or by itself. */
export interface GroupTarget {
  readonly role: GroupRole;
  readonly isSelf: boolean;
}

/**
 * Returns whether a member may see a recovery request.
 *
 * @example
 * mayViewRecovery('member', { role: 'member', isSelf: true }); // true
 */
export function mayViewRecovery(role: GroupRole, requester: GroupTarget): boolean {
  if (role === 'owner' || requester.isSelf) return true;
  return role === 'administrator' && requester.role === 'member';
}

/**
 * Returns whether a member may approve a recovery request; only the owner approves its own.
 *
 * @example
 * mayApproveRecovery('administrator', { role: 'member', isSelf: false }); // true
 */
export function mayApproveRecovery(role: GroupRole, requester: GroupTarget): boolean {
  if (role === 'owner') return true;
  return role === 'administrator' && requester.role === 'member' && !requester.isSelf;
}

/**
 * Returns whether a member may reject a recovery request, or withdraw its own.
 *
 * @example
 * mayRejectRecovery('member', { role: 'member', isSelf: true }); // true
 */
export function mayRejectRecovery(role: GroupRole, requester: GroupTarget): boolean {
  return mayViewRecovery(role, requester);
}
