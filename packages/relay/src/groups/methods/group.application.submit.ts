import { checkGroupOpen, checkGroupParams, ProtocolError } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { requireCaller, requireOwnAccount, writeAdmitted } from '../../accounts/index.ts';
import { digest } from '../../digest.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { keepCertificate } from '../chain/event-store.ts';
import { type LoadedGroup, loadGroup } from '../chain/load-group.ts';
import { applicationsNotice } from '../chain/notices.ts';
import { readApplications, writeApplication } from '../requests/application-store.ts';
import type { StoredInvitation } from '../requests/invite-store.ts';
import { checkRecordBytes } from '../requests/record-quota.ts';
import { usableInvite } from '../requests/usable-invite.ts';

/** `group.application.submit` (05 §13.13). */
export const groupApplicationSubmit: Handler<'group.application.submit'> = async (
  context,
  call,
) => {
  const session = call.session;
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
      const invitation = await requireInvited(tx, group, { inviteId, account, now });
      // An application is worth as much as the invitation it rests on (05 §8.2).
      return { caller, neededUntil: invitation.invite.expires_at };
    },
    work: async (tx, { caller, neededUntil }, now) => {
      const present = (await readApplications(tx, groupId, [account])).get(account);
      if (present?.digest === digest(text)) return { result: null };
      const record = { account, kind: 'application', text } as const;
      await checkRecordBytes(tx, groupId, { limits: context.limits, record });
      const { deviceId, signer } = caller;
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
      await keepCertificate(tx, groupId, { signer, neededUntil });
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
): Promise<StoredInvitation> {
  if (view.bans.has(guest.account)) throw notInvited();
  if (view.members.get(guest.account) !== undefined) {
    throw new ProtocolError('state_conflict', 'the account is a member already');
  }
  const invitation = await usableInvite(tx, view.group_id, guest);
  if (invitation === undefined) throw notInvited();
  checkGroupOpen(view);
  return invitation;
}

function notInvited(): ProtocolError {
  return new ProtocolError('forbidden', 'the account is not invited');
}
