import {
  canonicalJson,
  checkGroupOpen,
  checkGroupParams,
  type GroupApplication,
  ProtocolError,
} from '@posthouse/protocol';
import { requireCaller, requireOwnAccount, writeAdmitted } from '../../accounts/index.ts';
import type { DeviceSession, Handler } from '../../call.ts';
import { digest } from '../../digest.ts';
import type { Reader } from '../../storage/types.ts';
import { readApplications, writeApplication } from '../application-store.ts';
import { keepCertificate } from '../event-store.ts';
import { usableInvite } from '../invites.ts';
import { applicationsNotice } from '../notices.ts';
import { checkRecordBytes } from '../record-quota.ts';
import { type LoadedGroup, loadGroup } from '../view.ts';

/** `group.application.submit` (05 §13.13). */
export const groupApplicationSubmit: Handler<GroupApplication> = async (context, call) => {
  const session = call.session as DeviceSession;
  const { params: application } = call;
  checkGroupParams(context.network, 'group.application.submit', application);
  requireOwnAccount(session, application.account);
  const { group_id: groupId, invite_id: inviteId, account } = application;
  const text = canonicalJson(application);
  return await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}`, signed: application },
    admit: async (tx, { now }) => {
      const caller = await requireCaller(tx, session, now);
      const group = await loadGroup(tx, groupId, [account]);
      await requireInvited(tx, group, { inviteId, account, now });
      return caller;
    },
    work: async (tx, { deviceId, signer }, now) => {
      const present = (await readApplications(tx, groupId, [account])).get(account);
      if (present?.digest === digest(text)) return { result: null };
      const record = { account, kind: 'application', text } as const;
      await checkRecordBytes(tx, groupId, { limits: context.limits, record });
      const { certificateId, certificate } = signer;
      const { member_encryption_public_key: memberKey } = application;
      const pending = {
        account,
        inviteId,
        deviceId,
        certificateId,
        memberKey,
        digest: digest(text),
      };
      const texts = { application: text, certificate };
      await keepCertificate(tx, signer);
      await writeApplication(
        tx,
        groupId,
        { ...pending, acceptedAt: now, texts },
        present?.inviteId,
      );
      return { result: null, notices: [await applicationsNotice(tx, groupId)] };
    },
  });
};

/**
 * The caller may apply now. That the group is closed is told only to those an invitation lets look
 * at it (05 §12.4, §13.3).
 *
 * @throws ProtocolError `forbidden`, `state_conflict`
 */
async function requireInvited(
  tx: Reader,
  { view }: LoadedGroup,
  guest: { readonly inviteId: string; readonly account: string; readonly now: number },
): Promise<void> {
  if (view.bans.has(guest.account)) throw notInvited();
  if (view.members.get(guest.account) !== undefined) {
    throw new ProtocolError('state_conflict', 'the account is a member already');
  }
  if ((await usableInvite(tx, view.group_id, guest)) === undefined) throw notInvited();
  checkGroupOpen(view);
}

function notInvited(): ProtocolError {
  return new ProtocolError('forbidden', 'the account is not invited');
}
