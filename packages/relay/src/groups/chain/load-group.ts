import { type GroupView, ProtocolError } from '@posthouse/protocol';
import type { Reader } from '../../storage/types.ts';
import {
  factsOf,
  type KnownAccounts,
  readAccounts,
  readGroup,
  type StoredGroup,
} from './group-store.ts';

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
  // Both at once: PostgreSQL is asked once.
  const [stored, known] = await Promise.all([
    readGroup(tx, groupId),
    readAccounts(tx, groupId, [...new Set(accounts)]),
  ]);
  if (stored === undefined) throw new ProtocolError('not_found', 'this relay hosts no such group');
  return { stored, view: viewOf(stored, known) };
}

function viewOf(stored: StoredGroup, { members, bans }: KnownAccounts): GroupView {
  return {
    ...factsOf(stored),
    members: { size: stored.member_count, get: (account) => members.get(account) },
    bans,
  };
}
