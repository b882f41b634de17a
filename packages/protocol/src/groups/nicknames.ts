/**
 * Nicknames in one group: local display state of one reader, never a member's identity or right
 * (05 §14.4).
 */
import type { GroupEffects } from './chain/effects.ts';
import type { GroupView } from './projection.ts';

/**
 * The newest update that was applied for an account; `null` if the account cleared its nickname.
 */
export interface GroupNickname {
  readonly nickname: string | null;
  /** Of the event that carried it. */
  readonly sequence: number;
}

/** By account. */
export type GroupNicknames = ReadonlyMap<string, GroupNickname>;

/** A verified, decrypted and valid update. */
export interface NicknameUpdate {
  /** Sender, from the verified certificate. */
  readonly account: string;
  readonly nickname: string | null;
  /** Of the event. */
  readonly sequence: number;
}

/** The result of an update; only `applied` changes something. */
export type NicknameResult = 'applied' | 'duplicate' | 'older' | 'previous_membership';

/**
 * Applies an update if it is newer than the known one, whenever it was decrypted. Order of arrival
 * and `created_at` are ignored.
 *
 * @param group the present verified state: the update must lie within the present memberships of
 *   its sender and of the reader
 * @param reader the own account
 * @example
 * const update = { account: peer, nickname: 'Ann', sequence: event.sequence };
 * const { result } = applyNickname(nicknames, { group, reader: account }, update);
 */
export function applyNickname(
  nicknames: GroupNicknames,
  { group, reader }: { readonly group: Pick<GroupView, 'members'>; readonly reader: string },
  { account, nickname, sequence }: NicknameUpdate,
): { readonly nicknames: GroupNicknames; readonly result: NicknameResult } {
  const within = (member: string) => {
    const since = group.members.get(member)?.since;
    return since !== undefined && sequence > since;
  };
  if (!within(account) || !within(reader)) return { nicknames, result: 'previous_membership' };
  const known = nicknames.get(account)?.sequence ?? -1;
  if (sequence <= known) {
    return { nicknames, result: sequence === known ? 'duplicate' : 'older' };
  }
  return {
    nicknames: new Map(nicknames).set(account, { nickname, sequence }),
    result: 'applied',
  };
}

/**
 * Forgets the nicknames of accounts whose membership an event ended, and all of them if the
 * reader's own membership ended. Changes of role, key and owner have no effect on them.
 *
 * @returns the very same map if nothing changes
 * @example
 * const kept = forgetNicknames(nicknames, effects, account);
 */
export function forgetNicknames(
  nicknames: GroupNicknames,
  { left }: Pick<GroupEffects, 'left'>,
  reader: string,
): GroupNicknames {
  if (left.includes(reader)) return new Map();
  if (!left.some((account) => nicknames.has(account))) return nicknames;
  return new Map([...nicknames].filter(([account]) => !left.includes(account)));
}
