import { checkGroupParams, type GroupParams, isGroupManager } from '@posthouse/protocol';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import { loadGroup } from '../chain/load-group.ts';
import { writeLink } from '../chain/write-event.ts';
import { arrivalsOf } from '../requests/approvals.ts';
import { readPendingRecoveries, readRecoveryRecord } from '../requests/recovery-store.ts';
import { verifyRecords } from '../requests/verify-requests.ts';

type Params = GroupParams<'group.member.recovery.approve'>;

/** `group.member.recovery.approve` (05 §13.23). */
export const groupMemberRecoveryApprove: Handler<'group.member.recovery.approve'> = async (
  context,
  call,
) => {
  const { params } = call;
  checkGroupParams(context.network, 'group.member.recovery.approve', params);
  const verified = await verifyRequests(context, params, call.session);
  const link = { kind: 'group.member.recovery.approval', body: params.approval } as const;
  const { group_id: groupId, members } = params.approval;
  const accounts = members.map(({ account }) => account);
  return await writeLink(context, call, link, async (deciding) => {
    const { tx, now } = deciding;
    const pending = await readPendingRecoveries(tx, groupId, { accounts, now });
    return { arrivals: arrivalsOf(params, deciding, { pending, verified }) };
  });
};

/** Digests of the requests whose evidence holds; of nobody's where the caller may approve nothing. */
async function verifyRequests(
  context: RelayContext,
  { approval }: Params,
  { account: caller }: DeviceSession,
): Promise<ReadonlyMap<string, string>> {
  const { group_id: groupId, members } = approval;
  const { view } = await context.storage.read((tx) => loadGroup(tx, groupId, [caller]));
  const role = view.members.get(caller)?.role;
  if (role === undefined || !isGroupManager(role)) return new Map();
  const accounts = members.map(({ account }) => account);
  return await verifyRecords(context, 'recovery request', {
    accounts,
    read: (tx, account) => readRecoveryRecord(tx, groupId, account),
  });
}
