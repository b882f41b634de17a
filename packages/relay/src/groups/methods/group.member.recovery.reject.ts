import {
  checkGroupOpen,
  checkGroupParams,
  currentMember,
  type GroupView,
  isGroupManager,
  mayRejectRecovery,
  ProtocolError,
} from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { forEach } from '../../storage/in-lists.ts';
import { admitToWrite } from '../chain/admission.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { loadGroup } from '../chain/load-group.ts';
import { type Requester, recoveriesNotice } from '../chain/notices.ts';
import { noRequest } from '../requests/approvals.ts';
import { deleteRecovery } from '../requests/recovery-store.ts';

/** `group.member.recovery.reject` (05 §13.24). */
export const groupMemberRecoveryReject: Handler<'group.member.recovery.reject'> = async (
  context,
  call,
) => {
  const session = call.session;
  checkGroupParams(context.network, 'group.member.recovery.reject', call.params);
  const { group_id: groupId, accounts } = call.params;
  const groupCall = { session, groupId };
  const { account: by } = session;
  await admitToWrite(context, groupCall, async (tx) => {
    // Only the write loads the targets, which may be many.
    const { view } = await loadGroup(tx, groupId, [by]);
    for (const account of accounts) requireRejectable(view, { account, by });
  });
  return await writeInGroup(context, groupCall, async (tx, { now }) => {
    const { view } = await loadGroup(tx, groupId, [by, ...accounts]);
    const requesters = accounts.map((account) => requireRejectable(view, { account, by }));
    checkGroupOpen(view);
    await forEach(accounts, async (account) => {
      if (!(await deleteRecovery(tx, groupId, { account, now }))) throw noRequest();
    });
    return { result: null, notices: [await recoveriesNotice(tx, groupId, requesters)] };
  });
};

/**
 * Requires that a member may reject the request of an account, or withdraw its own. An account that
 * is no member has no request; only a member that may see requests of others learns that.
 *
 * @throws ProtocolError `forbidden`
 */
function requireRejectable(
  view: GroupView,
  { account, by }: { readonly account: string; readonly by: string },
): Requester {
  const { role } = currentMember(view, by);
  const target = view.members.get(account);
  const isAllowed =
    target === undefined
      ? isGroupManager(role)
      : mayRejectRecovery(role, { role: target.role, isSelf: account === by });
  if (!isAllowed) throw new ProtocolError('forbidden', 'the account may not reject this request');
  return { account, role: target?.role ?? 'member', isMember: true };
}
