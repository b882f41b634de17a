import { describe, expect, test } from 'vitest';
import {
  type GroupRole,
  isGroupManager,
  mayApproveRecovery,
  mayBanAccount,
  mayCreateInvite,
  mayRejectRecovery,
  mayRemoveMember,
  mayRevokeInvite,
  mayViewInvite,
  mayViewRecovery,
} from '../../src/index.ts';
import { tableRows } from '../methods/chapters.ts';

const roles = ['owner', 'administrator', 'member'] as const;
const forms = ['targeted', 'public'] as const;

/** Cells of a row of the table in section 6, for owner, administrator, member. */
function cells(operation: string): readonly string[] {
  const rows = tableRows('05-groups.md', '## 6. Roles and permissions');
  const row = rows.find(([name]) => name === operation);
  if (row === undefined) throw new Error(`no row ${operation}`);
  return row.slice(1);
}

/** Holds a row of the table against what a function says for each role. */
function row(operation: string, says: (role: GroupRole) => string) {
  expect(roles.map(says)).toEqual(cells(operation));
}

describe('05 §6: the table of permissions', () => {
  test('creating invitations', () => {
    row('Create invitations', (role) => {
      const policies = ['administrators', 'members_targeted', 'members_shareable'] as const;
      const all = policies.map(
        (policy) => forms.filter((form) => mayCreateInvite(role, policy, form)).length,
      );
      if (all.every((count) => count === 2)) return 'yes';
      return all.join() === '0,1,2' ? 'per invite_policy' : all.join();
    });
    expect(mayCreateInvite('member', 'members_targeted', 'targeted')).toBe(true);
    expect(mayCreateInvite('member', 'members_targeted', 'public')).toBe(false);
  });

  const scope = (may: (isOwn: boolean) => boolean) =>
    may(false) ? 'all' : may(true) ? 'own' : 'no';

  test('viewing and revoking invitations', () => {
    row('View invitations', (role) => scope((isOwn) => mayViewInvite(role, isOwn)));
    row('Revoke invitations', (role) => scope((isOwn) => mayRevokeInvite(role, isOwn)));
  });

  test('handling applications and unbanning', () => {
    const says = (role: GroupRole) => (isGroupManager(role) ? 'yes' : 'no');
    row('List, approve, reject applications', says);
    row('Unban', says);
  });

  test('removing and banning', () => {
    const named: Record<string, string> = {
      'administrator,member': 'any non-owner',
      member: 'role member only',
      '': 'no',
    };
    row('Remove members', (role) => {
      return named[roles.filter((target) => mayRemoveMember(role, target)).join()] ?? '?';
    });
    const banned: Record<string, string> = {
      'administrator,member,': 'any non-owner account',
      'member,': 'role member or nonmembers',
      '': 'no',
    };
    row('Ban', (role) => {
      const targets = [...roles, undefined].filter((target) => mayBanAccount(role, target));
      return banned[targets.map(String).join().replace('undefined', '')] ?? '?';
    });
  });

  const requesters = roles.flatMap((role) => [false, true].map((isSelf) => ({ role, isSelf })));
  /** Requests a role is let at, by the requester's role; `self` for its own. */
  const let_ = (may: typeof mayViewRecovery) => (role: GroupRole) =>
    requesters
      .filter((each) => !each.isSelf || each.role === role)
      .filter((each) => may(role, each))
      .map((each) => (each.isSelf ? 'self' : each.role))
      .join();

  test('seeing, approving, rejecting and withdrawing recovery requests', () => {
    expect(cells('See recovery requests')).toEqual(['all', 'those of role member, and own', 'own']);
    expect(roles.map(let_(mayViewRecovery))).toEqual([
      'owner,self,administrator,member',
      'self,member',
      'self',
    ]);
    expect(cells('Approve recovery')).toEqual([
      'any member, itself too',
      'role member only, not itself',
      'no',
    ]);
    expect(roles.map(let_(mayApproveRecovery))).toEqual([
      'owner,self,administrator,member',
      'member',
      '',
    ]);
    expect(cells('Reject recovery')).toEqual([
      "others'",
      'those of other role member accounts',
      'no',
    ]);
    expect(cells('Withdraw own recovery request')).toEqual(['yes', 'yes', 'yes']);
    expect(roles.map(let_(mayRejectRecovery))).toEqual([
      'owner,self,administrator,member',
      'self,member',
      'self',
    ]);
  });
});
