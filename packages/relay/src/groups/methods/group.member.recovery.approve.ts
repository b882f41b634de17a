import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { applyEvent } from '../chain/apply-event.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { admitEvent, decideEvent } from '../chain/write-event.ts';
import { approveRequests } from '../requests/approvals.ts';
import { readPendingRecoveries } from '../requests/recovery-store.ts';
import { verifyRequests } from '../requests/verify-requests.ts';

/** `group.member.recovery.approve` (05 §13.23). */
export const groupMemberRecoveryApprove: Handler<'group.member.recovery.approve'> = async (
  context,
  call,
) => {
  const { network } = context;
  const { params } = call;
  checkGroupParams(network, 'group.member.recovery.approve', params);
  const { approval } = params;
  const groupId = approval.group_id;
  const groupCall = { session: call.session, groupId };
  const accounts = approval.members.map(({ account }) => account);
  const content = { kind: 'group.member.recovery.approval', body: approval } as const;

  const event = await admitEvent(context, groupCall, content);
  const verified = await verifyRequests(context, { kind: 'recovery', groupId, accounts });

  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const decided = await decideEvent(tx, calling, event);
    const { now } = calling;
    const pending = await readPendingRecoveries(tx, groupId, { accounts, now });
    const approved = approveRequests(params, decided.group, { pending, verified });
    return await applyEvent(context, tx, { ...decided, approved });
  });
};
