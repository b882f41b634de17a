import { groupInviteState, inviteAppliesTo } from '@posthouse/protocol';
import type { Reader } from '../../storage/types.ts';
import { readInvite, type StoredInvitation } from './invite-store.ts';

/**
 * An invitation that an account could apply with now. Whoever may not know more is not told why
 * there is none.
 */
export async function usableInvite(
  tx: Reader,
  groupId: string,
  guest: { readonly inviteId: string; readonly account: string; readonly now: number },
): Promise<StoredInvitation | undefined> {
  const { inviteId, account, now } = guest;
  const stored = await readInvite(tx, groupId, inviteId);
  if (stored === undefined || groupInviteState(stored, now) !== 'valid') return undefined;
  return inviteAppliesTo(stored.invite, account) ? stored : undefined;
}
