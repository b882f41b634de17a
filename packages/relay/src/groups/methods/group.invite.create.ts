import {
  checkGroupInviteTimes,
  checkGroupOpen,
  checkGroupParams,
  type GroupInvite,
  mayCreateInvite,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { type CallingDevice, requireOwnAccount, type Signer } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { RelayLimits } from '../../limits.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { admitToWrite } from '../chain/admission.ts';
import { keepCertificate } from '../chain/event-store.ts';
import { type GroupCall, writeInGroup } from '../chain/group-transactions.ts';
import { requireMember } from '../chain/require-member.ts';
import { hasManyInvites, insertInvite, readInvite } from '../requests/invite-store.ts';
import { checkRecordBytes } from '../requests/record-quota.ts';
import { expiryJobName } from '../upkeep/expiry-job.ts';

/** `group.invite.create` (05 §13.9). */
export const groupInviteCreate: Handler<'group.invite.create'> = async (context, call) => {
  const { limits } = context;
  const session = call.session;
  const { params: invite } = call;
  checkGroupParams(context.network, 'group.invite.create', invite);
  requireOwnAccount(session, invite.inviter);
  const groupCall = { session, groupId: invite.group_id };
  const requireRight = async (tx: Reader, { now }: CallingDevice) => {
    const times = { now, tolerance: limits.authClockTolerance, maxTtl: limits.groupInviteTtl };
    checkGroupInviteTimes(invite, times);
    await requireInviteRight(tx, groupCall, invite);
  };
  await admitToWrite(context, { ...groupCall, signed: invite }, requireRight);
  await writeInGroup(context, groupCall, async (tx, calling) => {
    await requireRight(tx, calling);
    await storeInvite(limits, tx, { invite, signer: calling.caller.signer, now: calling.now });
  });
  context.jobs.wake(expiryJobName);
  return { result: null };
};

/**
 * Requires the right to invite, which is checked here and never again (05 §8.1).
 * @throws ProtocolError `not_found`, `forbidden`, `state_conflict`
 */
async function requireInviteRight(
  tx: Reader,
  groupCall: GroupCall,
  { invitee }: GroupInvite,
): Promise<void> {
  const { group, member } = await requireMember(tx, groupCall);
  const form = invitee === undefined ? 'public' : 'targeted';
  if (!mayCreateInvite(member.role, group.stored.invite_policy, form)) {
    throw new ProtocolError('forbidden', 'the account may not create such invitations');
  }
  checkGroupOpen(group.stored);
}

async function storeInvite(
  limits: RelayLimits,
  tx: Writer,
  {
    invite,
    signer,
    now,
  }: { readonly invite: GroupInvite; readonly signer: Signer; readonly now: number },
): Promise<void> {
  const { group_id: groupId, invite_id: inviteId, inviter } = invite;
  if ((await readInvite(tx, groupId, inviteId)) !== undefined) {
    throw new ProtocolError('state_conflict', 'the invitation ID is taken');
  }
  if (await hasManyInvites(tx, groupId, { inviter, now, limit: limits.groupInvites })) {
    throw new ProtocolError('rate_limited', 'the account has too many valid invitations');
  }
  const text = canonicalJson(invite);
  const record = { account: inviter, kind: 'invite', text } as const;
  await checkRecordBytes(tx, groupId, { limits, record, now });
  const { deviceId, certificateId } = signer;
  await tx.run(...keepCertificate(groupId, { signer, neededUntil: invite.expires_at }));
  const stored = { invite, inviteId, inviter, deviceId, certificateId };
  await insertInvite(tx, groupId, stored, text);
}
