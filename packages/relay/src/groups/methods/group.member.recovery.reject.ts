import {
  checkGroupOpen,
  checkGroupParams,
  currentMember,
  isGroupManager,
  mayRejectRecovery,
  ProtocolError,
} from '@posthouse/protocol';
import { requireCaller, writeAdmitted } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { forEach } from '../../storage/in-lists.ts';
import { type LoadedGroup, loadGroup } from '../chain/load-group.ts';
import { type Requester, recoveriesNotice } from '../chain/notices.ts';
import { deleteRecovery } from '../requests/recovery-store.ts';

/** `group.member.recovery.reject` (05 §13.24). */
export const groupMemberRecoveryReject: Handler<'group.member.recovery.reject'> = async (
  context,
  call,
) => {
  const session = call.session;
  checkGroupParams(context.network, 'group.member.recovery.reject', call.params);
  const { group_id: groupId, accounts } = call.params;
  return await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}` },
    admit: async (tx, { now, inTransaction }) => {
      await requireCaller(tx, session, now);
      // The targets, which may be many, are looked up by the write alone.
      const known = inTransaction ? accounts : [];
      const { view } = await loadGroup(tx, groupId, [session.account, ...known]);
      return {
        view,
        requesters: accounts.map((account) => rejected(view, { account, by: session.account })),
      };
    },
    work: async (tx, { view, requesters }, now) => {
      checkGroupOpen(view);
      await forEach(accounts, async (account) => {
        if (await deleteRecovery(tx, groupId, { account, now })) return;
        throw new ProtocolError('not_found', 'an account has no pending request');
      });
      return { result: null, notices: [await recoveriesNotice(tx, groupId, requesters)] };
    },
  });
};

/**
 * The account whose request is rejected, or withdrawn by itself. One that is no member has none,
 * which is for those to learn who may see requests of others.
 *
 * @throws ProtocolError `forbidden`
 */
function rejected(
  view: LoadedGroup['view'],
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
