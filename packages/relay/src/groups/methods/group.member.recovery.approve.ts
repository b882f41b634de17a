import {
  canonicalJson,
  checkGroupParams,
  type GroupParams,
  type GroupSecretBox,
  isGroupManager,
  ProtocolError,
} from '@posthouse/protocol';
import type { DeviceSession, Handler } from '../../call.ts';
import type { RelayContext } from '../../context.ts';
import type { Arrival } from '../apply.ts';
import { type Deciding, writeLink } from '../link.ts';
import { verifyRecords } from '../records.ts';
import { readPendingRecoveries, readRecoveryRecord } from '../recovery-store.ts';
import { loadGroup } from '../view.ts';

type Params = GroupParams<'group.member.recovery.approve'>;

/** `group.member.recovery.approve` (05 §13.23). */
export const groupMemberRecoveryApprove: Handler<Params> = async (context, call) => {
  const { params } = call;
  checkGroupParams(context.network, 'group.member.recovery.approve', params);
  const verified = await verifyRequests(context, params, call.session as DeviceSession);
  const link = { kind: 'group.member.recovery.approval', body: params.approval } as const;
  return await writeLink(context, call, link, async (deciding) => ({
    arrivals: await arrivalsOf(params, verified, deciding),
  }));
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

/** The requests are there, unexpired, as they were verified, and ask for what is approved. */
async function arrivalsOf(
  { approval, client_secret_commitment, client_secret_boxes: boxes }: Params,
  verified: ReadonlyMap<string, string>,
  { tx, group, now }: Deciding,
): Promise<ReadonlyMap<string, Arrival>> {
  const { group_id: groupId, commitment } = group.stored;
  if (client_secret_commitment !== commitment) throw conflict('the commitment is not current');
  const accounts = approval.members.map(({ account }) => account);
  const pending = await readPendingRecoveries(tx, groupId, { accounts, now });
  const arrivals = new Map<string, Arrival>();
  for (const { account, member_encryption_public_key: key } of approval.members) {
    const request = pending.get(account);
    if (request === undefined) {
      throw new ProtocolError('not_found', 'an account has no pending request');
    }
    if (request.memberKey !== key) throw conflict('a key is not the one asked for');
    if (request.digest !== verified.get(account)) throw conflict('a request was replaced');
    const { deviceId } = request;
    arrivals.set(account, { deviceId, box: canonicalJson(boxes[account] as GroupSecretBox) });
  }
  return arrivals;
}

function conflict(reason: string): ProtocolError {
  return new ProtocolError('state_conflict', reason);
}
