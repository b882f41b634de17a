import {
  checkGroupInviteTimes,
  checkGroupOpen,
  checkGroupParams,
  type GroupInvite,
  mayCreateInvite,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { requireOwnAccount, writeAdmitted } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { keepCertificate } from '../chain/event-store.ts';
import { type CallingMember, requireMember } from '../chain/require-member.ts';
import { hasManyInvites, insertInvite, readInvite } from '../requests/invite-store.ts';
import { checkRecordBytes } from '../requests/record-quota.ts';
import { expiryJobName } from '../upkeep/jobs.ts';

/** `group.invite.create` (05 §13.9). */
export const groupInviteCreate: Handler<'group.invite.create'> = async (context, call) => {
  const { limits } = context;
  const session = call.session;
  const { params: invite } = call;
  checkGroupParams(context.network, 'group.invite.create', invite);
  requireOwnAccount(session, invite.inviter);
  const { group_id: groupId } = invite;
  const outcome = await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}`, signed: invite },
    admit: async (tx, { now }) => {
      const times = { now, tolerance: limits.authClockTolerance, maxTtl: limits.groupInviteTtl };
      checkGroupInviteTimes(invite, times);
      const member = await requireMember(tx, session, { groupId, now });
      requireInviteRight(member, invite);
      return member;
    },
    work: async (tx, member, now) => {
      await store(context, tx, { invite, member, now });
      return { result: null };
    },
  });
  context.jobs.wake(expiryJobName);
  return outcome;
};

/**
 * The right to invite is judged here, and never again (05 §8.1).
 * @throws ProtocolError `forbidden`, `state_conflict`
 */
function requireInviteRight({ group, member }: CallingMember, { invitee }: GroupInvite): void {
  const form = invitee === undefined ? 'public' : 'targeted';
  if (!mayCreateInvite(member.role, group.stored.invite_policy, form)) {
    throw new ProtocolError('forbidden', 'the account may not create such invitations');
  }
  checkGroupOpen(group.stored);
}

async function store(
  { limits }: RelayContext,
  tx: Writer,
  { invite, member, now }: { invite: GroupInvite; member: CallingMember; now: number },
): Promise<void> {
  const { group_id: groupId, invite_id: inviteId, inviter } = invite;
  if ((await readInvite(tx, groupId, inviteId)) !== undefined) {
    throw new ProtocolError('state_conflict', 'the invitation ID is taken');
  }
  if (await hasManyInvites(tx, groupId, { inviter, now, most: limits.groupInvites })) {
    throw new ProtocolError('rate_limited', 'the account has too many valid invitations');
  }
  const text = canonicalJson(invite);
  const record = { account: inviter, kind: 'invites', text } as const;
  await checkRecordBytes(tx, groupId, { limits, record });
  const { signer } = member.caller;
  const { deviceId, certificateId } = signer;
  await keepCertificate(tx, groupId, { signer, neededUntil: invite.expires_at });
  const stored = { invite, inviteId, inviter, deviceId, certificateId };
  await insertInvite(tx, groupId, stored, text);
}
