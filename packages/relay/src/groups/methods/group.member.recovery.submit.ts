import { badRequest, checkGroupOpen, checkGroupParams } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { requireOwnAccount, writeAdmitted } from '../../accounts/index.ts';
import { digest } from '../../digest.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import { keepCertificate } from '../chain/event-store.ts';
import { recoveriesNotice } from '../chain/notices.ts';
import { requireMember } from '../chain/require-member.ts';
import { checkRecordBytes } from '../requests/record-quota.ts';
import { readPendingRecoveries, writeRecovery } from '../requests/recovery-store.ts';
import { expiryJobName } from '../upkeep/jobs.ts';

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
  const text = canonicalJson(request);
  const outcome = await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}`, signed: request },
    admit: (tx, { now }) => requireMember(tx, session, { groupId, now }),
    work: async (
      tx,
      { caller: { deviceId, signer }, group, member },
      now,
    ): Promise<HandlerResult> => {
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
      await checkRecordBytes(tx, groupId, { limits, record });
      const { certificateId } = signer;
      const times = { acceptedAt: now, expiresAt: now + limits.groupRecoveryWait };
      const stored = { account, deviceId, certificateId, ...times, memberKey, request: text };
      await keepCertificate(tx, groupId, { signer, neededUntil: times.expiresAt });
      await writeRecovery(tx, groupId, stored);
      const requester = { account, role: member.role, isMember: true };
      return {
        result: { accepted_at: times.acceptedAt, expires_at: times.expiresAt },
        notices: [await recoveriesNotice(tx, groupId, [requester])],
      };
    },
  });
  context.jobs.wake(expiryJobName);
  return outcome;
};
