import { badRequest, checkGroupOpen, checkGroupParams } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { requireOwnAccount } from '../../accounts/index.ts';
import { digest } from '../../digest.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import { admitToWrite } from '../chain/admission.ts';
import { keepCertificate } from '../chain/event-store.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { recoveriesNotice } from '../chain/notices.ts';
import { requireMember } from '../chain/require-member.ts';
import { checkRecordBytes } from '../requests/record-quota.ts';
import { readPendingRecoveries } from '../requests/recovery-store.ts';
import { writeRequest } from '../requests/request-store.ts';
import { expiryJobName } from '../upkeep/expiry-job.ts';

/** `group.member.recovery.submit` (05 §13.21). */
export const groupMemberRecoverySubmit: Handler<'group.member.recovery.submit'> = async (
  context,
  call,
) => {
  const { limits } = context;
  const session = call.session;
  const { params: request } = call;
  checkGroupParams(context.network, 'group.member.recovery.submit', request);
  requireOwnAccount(session, request.account);
  const { group_id: groupId, account, member_encryption_public_key: memberKey } = request;
  const groupCall = { session, groupId };
  const text = canonicalJson(request);
  await admitToWrite(context, { ...groupCall, signed: request }, (tx) =>
    requireMember(tx, groupCall),
  );
  const result = await writeInGroup(
    context,
    groupCall,
    async (tx, { caller: { signer }, now }): Promise<HandlerResult> => {
      const { group, member } = await requireMember(tx, groupCall);
      checkGroupOpen(group.view);
      if (memberKey === member.member_encryption_public_key) {
        throw badRequest('member_encryption_public_key', 'is the current key');
      }
      const pending = await readPendingRecoveries(tx, groupId, { accounts: [account], now });
      const present = pending.get(account);
      if (present?.digest === digest(text)) {
        return { result: { accepted_at: present.acceptedAt, expires_at: present.expiresAt } };
      }
      const record = { account, kind: 'recovery', text } as const;
      await checkRecordBytes(tx, groupId, { limits, record, now });
      const times = { acceptedAt: now, expiresAt: now + limits.groupRecoveryWait };
      await tx.run(...keepCertificate(groupId, { signer, neededUntil: times.expiresAt }));
      const stored = { account, ...signer, memberKey, ...times, text };
      await writeRequest(tx, { kind: 'recovery', groupId }, stored);
      const requester = { account, role: member.role, isMember: true };
      return {
        result: { accepted_at: times.acceptedAt, expires_at: times.expiresAt },
        notices: [await recoveriesNotice(tx, groupId, [requester])],
      };
    },
  );
  context.jobs.wake(expiryJobName);
  return result;
};
