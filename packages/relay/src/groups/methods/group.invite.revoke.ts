import {
  checkGroupOpen,
  checkGroupParams,
  groupInviteState,
  mayRevokeInvite,
  ProtocolError,
} from '@posthouse/protocol';
import { writeAdmitted } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { applicationsNotice } from '../chain/notices.ts';
import { type CallingMember, requireMember } from '../chain/require-member.ts';
import { readInvite, revokeInvite, type StoredInvitation } from '../requests/invite-store.ts';

/** `group.invite.revoke` (05 §13.12). */
export const groupInviteRevoke: Handler<'group.invite.revoke'> = async (context, call) => {
  const session = call.session;
  checkGroupParams(context.network, 'group.invite.revoke', call.params);
  const { group_id: groupId, invite_id: inviteId } = call.params;
  return await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}` },
    admit: async (tx, { now }) => {
      const calling = await requireMember(tx, session, { groupId, now });
      return await requireRevocable(tx, calling, { inviteId, now });
    },
    work: async (tx, { pending }) => {
      await revokeInvite(tx, groupId, inviteId);
      // Its applications stay where they are: from now on they count for nothing.
      return { result: null, notices: pending > 0 ? [await applicationsNotice(tx, groupId)] : [] };
    },
  });
};

/** @throws ProtocolError `forbidden`, `state_conflict`, `not_found` */
async function requireRevocable(
  tx: Reader,
  { group, member }: CallingMember,
  { inviteId, now }: { readonly inviteId: string; readonly now: number },
): Promise<StoredInvitation> {
  const stored = await readInvite(tx, group.stored.group_id, inviteId);
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
