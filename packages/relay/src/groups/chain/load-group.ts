import { type GroupMember, type GroupView, ProtocolError } from '@posthouse/protocol';
import type { Reader } from '../../storage/types.ts';
import { factsOf, readBans, readGroup, readMembers, type StoredGroup } from './group-store.ts';

/** A group as the rules of the chain read it, with only the accounts that a call is about. */
export interface LoadedGroup {
  readonly stored: StoredGroup;
  readonly view: GroupView;
}

/**
 * Loads a group with those of the accounts that are members or banned.
 * @throws ProtocolError `not_found`
 */
export async function loadGroup(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<LoadedGroup> {
  const stored = await readGroup(tx, groupId);
  if (stored === undefined) throw new ProtocolError('not_found', 'this relay hosts no such group');
  const distinct = [...new Set(accounts)];
  const members = await readMembers(tx, groupId, distinct);
  const bans = await readBans(tx, groupId, distinct);
  return { stored, view: viewOf(stored, { members, bans }) };
}

function viewOf(
  stored: StoredGroup,
  known: {
    readonly members: ReadonlyMap<string, GroupMember>;
    readonly bans: ReadonlySet<string>;
  },
): GroupView {
  const { members, bans } = known;
  return {
    ...factsOf(stored),
    members: { size: stored.member_count, get: (account) => members.get(account) },
    bans,
  };
}
