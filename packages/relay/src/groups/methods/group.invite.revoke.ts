import {
  checkGroupOpen,
  checkGroupParams,
  groupInviteState,
  mayRevokeInvite,
  ProtocolError,
} from '@posthouse/protocol';
import type { CallingDevice } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { admitToWrite } from '../chain/admission.ts';
import { type GroupCall, writeInGroup } from '../chain/group-transactions.ts';
import { applicationsNotice } from '../chain/notices.ts';
import { requireMember } from '../chain/require-member.ts';
import { readInvite, revokeInvite, type StoredInvitation } from '../requests/invite-store.ts';

/** `group.invite.revoke` (05 §13.12). */
export const groupInviteRevoke: Handler<'group.invite.revoke'> = async (context, call) => {
  checkGroupParams(context.network, 'group.invite.revoke', call.params);
  const { group_id: groupId, invite_id: inviteId } = call.params;
  const groupCall = { session: call.session, groupId };
  const requireRight = (tx: Reader, { now }: CallingDevice) =>
    requireRevocable(tx, groupCall, { inviteId, now });
  await admitToWrite(context, groupCall, requireRight);
  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const { pending } = await requireRight(tx, calling);
    await revokeInvite(tx, groupId, inviteId);
    // Its applications stay stored; from now on they count for nothing.
    return { result: null, notices: pending > 0 ? [await applicationsNotice(tx, groupId)] : [] };
  });
};

/** @throws ProtocolError `not_found`, `forbidden`, `state_conflict` */
async function requireRevocable(
  tx: Reader,
  groupCall: GroupCall,
  { inviteId, now }: { readonly inviteId: string; readonly now: number },
): Promise<StoredInvitation> {
  const { group, member } = await requireMember(tx, groupCall);
  const stored = await readInvite(tx, groupCall.groupId, inviteId);
  if (stored !== undefined && !mayRevokeInvite(member.role, stored.inviter === member.account)) {
    throw new ProtocolError('forbidden', 'the invitation is of another member');
  }
  checkGroupOpen(group.stored);
  if (stored?.revoked === true) throw new ProtocolError('state_conflict', 'it was revoked before');
  if (stored === undefined || groupInviteState(stored, now) !== 'valid') {
    throw new ProtocolError('not_found', 'no such invitation is valid');
  }
  return stored;
}
