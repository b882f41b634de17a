import {
  checkGroupParams,
  groupInviteState,
  mayViewInvite,
  ProtocolError,
} from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { readCertificates } from '../chain/event-store.ts';
import { readInGroup } from '../chain/group-transactions.ts';
import { requireMember } from '../chain/require-member.ts';
import { readInvite, readInviteTexts } from '../requests/invite-store.ts';

/** `group.invite.resolve` (05 §13.10). */
export const groupInviteResolve: Handler<'group.invite.resolve'> = async (context, call) => {
  checkGroupParams(context.network, 'group.invite.resolve', call.params);
  const { group_id: groupId, invite_id: inviteId } = call.params;
  const groupCall = { session: call.session, groupId };
  return await readInGroup(context, groupCall, async (tx, { now }) => {
    const { member } = await requireMember(tx, groupCall);
    const stored = await readInvite(tx, groupId, inviteId);
    if (stored !== undefined && !mayViewInvite(member.role, stored.inviter === member.account)) {
      throw new ProtocolError('forbidden', 'the invitation is of another member');
    }
    const text = (await readInviteTexts(tx, groupId, [inviteId])).get(inviteId);
    // Another process, whose clock is ahead, may have ended it already.
    if (stored === undefined || groupInviteState(stored, now) !== 'valid' || text === '') {
      throw new ProtocolError('not_found', 'no such invitation is valid');
    }
    const { certificateId } = stored;
    const certificate = (await readCertificates(tx, groupId, [certificateId])).get(certificateId);
    if (certificate === undefined || text === undefined) {
      throw new Error('an invitation lacks its text or its certificate');
    }
    return {
      result: {
        invite: new JsonText(text),
        signer_certificate: new JsonText(certificate),
        uses: stored.uses,
      },
    };
  });
};
