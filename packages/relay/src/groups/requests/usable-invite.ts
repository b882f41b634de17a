import { groupInviteState, inviteAppliesTo, type StoredInvite } from '@posthouse/protocol';
import type { Reader } from '../../storage/types.ts';
import { readInvite, type StoredInvitation } from './invite-store.ts';

/** Returns whether an account can apply with an invitation now, and its application be approved. */
export function isUsableBy(
  invitation: StoredInvite,
  { account, now }: { readonly account: string; readonly now: number },
): boolean {
  const isValid = groupInviteState(invitation, now) === 'valid';
  return isValid && inviteAppliesTo(invitation.invite, account);
}

/**
 * Reads an invitation that an account can apply with now. Why there is none is not said: the
 * account may not be allowed to know more.
 */
export async function readUsableInvite(
  tx: Reader,
  groupId: string,
  guest: { readonly inviteId: string; readonly account: string; readonly now: number },
): Promise<StoredInvitation | undefined> {
  const stored = await readInvite(tx, groupId, guest.inviteId);
  return stored !== undefined && isUsableBy(stored, guest) ? stored : undefined;
}
