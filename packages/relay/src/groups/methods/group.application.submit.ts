import {
  checkGroupOpen,
  checkGroupParams,
  type GroupApplication,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { requireOwnAccount } from '../../accounts/index.ts';
import { digest } from '../../digest.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { admitToWrite } from '../chain/admission.ts';
import { keepCertificate } from '../chain/event-store.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { loadGroup } from '../chain/load-group.ts';
import { applicationsNotice } from '../chain/notices.ts';
import { writeApplication } from '../requests/application-store.ts';
import type { StoredInvitation } from '../requests/invite-store.ts';
import { checkRecordBytes } from '../requests/record-quota.ts';
import { readRequests } from '../requests/request-store.ts';
import { readUsableInvite } from '../requests/usable-invite.ts';

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
  const groupCall = { session, groupId };
  const text = canonicalJson(application);
  await admitToWrite(context, { ...groupCall, signed: application }, (tx, { now }) =>
    requireInvited(tx, application, now),
  );
  return await writeInGroup(context, groupCall, async (tx, { caller, now }) => {
    const { invite } = await requireInvited(tx, application, now);
    const requests = { kind: 'application', groupId, accounts: [account] } as const;
    const present = (await readRequests(tx, requests)).get(account);
    if (present?.digest === digest(text)) return { result: null };
    const record = { account, kind: 'application', text } as const;
    await checkRecordBytes(tx, groupId, { limits: context.limits, record, now });
    const { signer } = caller;
    // An application is worth as much as its invitation (05 §8.2).
    await tx.run(...keepCertificate(groupId, { signer, neededUntil: invite.expires_at }));
    const { member_encryption_public_key: memberKey } = application;
    const stored = { account, inviteId, ...signer, memberKey, acceptedAt: now, text };
    await writeApplication(tx, groupId, stored, present?.inviteId);
    return { result: null, notices: [await applicationsNotice(tx, groupId)] };
  });
};

/**
 * Requires that an account may apply now. Only an account that its invitation lets see the group
 * learns that the group is closed (05 §12.4, §13.3).
 *
 * @throws ProtocolError `not_found`, `forbidden`, `state_conflict`
 */
async function requireInvited(
  tx: Reader,
  { group_id: groupId, invite_id: inviteId, account }: GroupApplication,
  now: number,
): Promise<StoredInvitation> {
  const { view } = await loadGroup(tx, groupId, [account]);
  if (view.bans.has(account)) throw notInvited();
  if (view.members.get(account) !== undefined) {
    throw new ProtocolError('state_conflict', 'the account is a member already');
  }
  const invitation = await readUsableInvite(tx, groupId, { inviteId, account, now });
  if (invitation === undefined) throw notInvited();
  checkGroupOpen(view);
  return invitation;
}

function notInvited(): ProtocolError {
  return new ProtocolError('forbidden', 'the account is not invited');
}
