import { checkGroupOpen, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { admitToWrite } from '../chain/admission.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { applicationsNotice } from '../chain/notices.ts';
import { requireManager } from '../chain/require-member.ts';
import { deleteApplications } from '../requests/application-store.ts';
import { noRequest } from '../requests/approvals.ts';
import { readInvites } from '../requests/invite-store.ts';
import { readRequests } from '../requests/request-store.ts';
import { isUsableBy } from '../requests/usable-invite.ts';

/** `group.application.reject` (05 §13.16). */
export const groupApplicationReject: Handler<'group.application.reject'> = async (
  context,
  call,
) => {
  checkGroupParams(context.network, 'group.application.reject', call.params);
  const { group_id: groupId, accounts } = call.params;
  const groupCall = { session: call.session, groupId };
  await admitToWrite(context, groupCall, (tx) => requireManager(tx, groupCall));
  return await writeInGroup(context, groupCall, async (tx, { now }) => {
    const { group } = await requireManager(tx, groupCall);
    checkGroupOpen(group.stored);
    const pending = await readRequests(tx, { kind: 'application', groupId, accounts });
    const inviteIds = [...pending.values()].map(({ inviteId }) => inviteId);
    const invites = await readInvites(tx, groupId, inviteIds);
    for (const account of accounts) {
      const invitation = invites.get(pending.get(account)?.inviteId ?? '');
      if (invitation === undefined || !isUsableBy(invitation, { account, now })) throw noRequest();
    }
    await deleteApplications(tx, groupId, accounts);
    return { result: null, notices: [await applicationsNotice(tx, groupId)] };
  });
};
