import { badRequest, ProtocolError } from '../../errors.ts';
import type { GroupChainBodies, GroupChainBody } from '../bodies.ts';
import type { GroupRole } from '../fields.ts';
import {
  isGroupManager,
  mayApproveRecovery,
  mayBanAccount,
  mayRemoveMember,
} from '../permissions.ts';
import type { GroupMember, GroupView } from '../projection.ts';

/** A chain event but the creation: kind and body. */
export type ChainEvent = GroupChainBody<Exclude<keyof GroupChainBodies, 'group.create'>>;

/**
 * Checks the signer against the state before the event: membership, ban, role, and the targets that
 * the role allows (05 §5.4, §6). These checks come before every check of state (05 §12.4).
 *
 * @param account that of the verified certificate
 * @throws ProtocolError `forbidden`; `bad_request` for a body of another group
 * @example
 * checkGroupAuthority(group, chainEvent, account);
 */
export function checkGroupAuthority(
  group: GroupView,
  { kind, body }: ChainEvent,
  account: string,
): void {
  if (body.group_id !== group.group_id) throw badRequest('group_id', 'is of another group');
  const signer = currentMember(group, account);
  switch (kind) {
    case 'group.update':
    case 'group.role.update':
    case 'group.close':
    case 'group.secret.rotation':
      requireRight(signer.role === 'owner');
      return;
    case 'group.owner.transfer': {
      requireRight(signer.role === 'owner');
      const target = body.new_owner_account;
      requireRight(target !== account && group.members.get(target) !== undefined);
      requireRight(!group.bans.has(target));
      return;
    }
    case 'group.application.approval':
    case 'group.member.unban':
      requireRight(isGroupManager(signer.role));
      return;
    case 'group.member.leave':
      requireRight(body.account === account && signer.role !== 'owner');
      return;
    case 'group.member.removal':
      requireRight(isGroupManager(signer.role));
      // No role may remove its own rank, so a signer is never the target of its own removal.
      for (const target of body.accounts) {
        requireRight(mayRemove(signer.role, group.members.get(target)));
      }
      return;
    case 'group.member.ban':
      for (const target of body.accounts) {
        requireRight(mayBanAccount(signer.role, group.members.get(target)?.role));
      }
      return;
    case 'group.member.recovery.approval':
      requireRight(isGroupManager(signer.role));
      for (const { account: target } of body.members) {
        requireRight(mayApprove(signer, group.members.get(target)));
      }
      return;
  }
}

/**
 * Returns the account's current membership.
 *
 * @throws ProtocolError `forbidden` for nonmembers and banned accounts, without revealing which
 * @example
 * const { role } = currentMember(group, account);
 */
export function currentMember(group: GroupView, account: string): GroupMember {
  const member = group.members.get(account);
  if (member === undefined || group.bans.has(account)) throw forbidden();
  return member;
}

/** Targets that left meanwhile are a question of state, answered later. */
function mayRemove(role: GroupRole, target: GroupMember | undefined): boolean {
  return target === undefined || mayRemoveMember(role, target.role);
}

function mayApprove(signer: GroupMember, target: GroupMember | undefined): boolean {
  if (target === undefined) return true;
  const isSelf = target.account === signer.account;
  return mayApproveRecovery(signer.role, { role: target.role, isSelf });
}

function requireRight(allowed: boolean): void {
  if (!allowed) throw forbidden();
}

/** Returns one text for every reason, so that it reveals nothing to outsiders (05 §12.4). */
function forbidden(): ProtocolError {
  return new ProtocolError('forbidden', 'the account may not do this in this group');
}
