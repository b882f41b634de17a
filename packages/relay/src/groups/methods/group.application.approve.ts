import {
  checkChainEvent,
  checkGroupParams,
  ProtocolError,
  remainingInviteUses,
} from '@posthouse/protocol';
import { verifySignature } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { applyEvent } from '../chain/apply-event.ts';
import { readInGroup, writeInGroup } from '../chain/group-transactions.ts';
import { loadGroup } from '../chain/load-group.ts';
import { decideEvent, signedEventOf } from '../chain/write-event.ts';
import { approveRequests, noRequest } from '../requests/approvals.ts';
import { type InviteUse, readInvites } from '../requests/invite-store.ts';
import { type PendingApplication, readRequests } from '../requests/request-store.ts';
import { isUsableBy } from '../requests/usable-invite.ts';
import { verifyRequests } from '../requests/verify-requests.ts';

/**
 * `group.application.approve` (05 §13.15).
 *
 * Unlike other events, an approval is refused for a stale head and for missing applications before
 * its signature is verified: the applications are verified first. A client that repeats an approval
 * on a new head MUST get `not_found`, although the accounts are members by then.
 */
export const groupApplicationApprove: Handler<'group.application.approve'> = async (
  context,
  call,
) => {
  const { network } = context;
  const { params } = call;
  checkGroupParams(network, 'group.application.approve', params);
  const { approval } = params;
  const groupId = approval.group_id;
  const groupCall = { session: call.session, groupId };
  const accounts = approval.members.map(({ account }) => account);
  const applications = { kind: 'application', groupId, accounts } as const;
  const content = { kind: 'group.application.approval', body: approval } as const;

  const signer = await readInGroup(context, groupCall, async (tx, { caller }) => {
    const { view } = await loadGroup(tx, groupId, [caller.account]);
    checkChainEvent(view, content, caller.account);
    const pending = await readRequests(tx, applications);
    if (accounts.some((account) => !pending.has(account))) throw noRequest();
    return caller;
  });
  const verified = await verifyRequests(context, applications);
  await verifySignature(context, approval, signer);
  const event = signedEventOf(network, content);

  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const decided = await decideEvent(tx, calling, event);
    const pending = await readRequests(tx, applications);
    const approved = approveRequests(params, decided.group, { pending, verified });
    const at = { groupId, now: calling.now };
    const uses = await countUses(tx, at, [...pending.values()]);
    return await applyEvent(context, tx, { ...decided, approved, uses });
  });
};

/**
 * Counts how often each invitation is used; it must still allow all its uses together.
 * @throws ProtocolError `state_conflict`
 */
async function countUses(
  tx: Reader,
  { groupId, now }: { readonly groupId: string; readonly now: number },
  applications: readonly PendingApplication[],
): Promise<readonly InviteUse[]> {
  const byInvite = Map.groupBy(applications, ({ inviteId }) => inviteId);
  const invites = await readInvites(tx, groupId, [...byInvite.keys()]);
  return [...byInvite].map(([inviteId, batch]) => {
    const invitation = invites.get(inviteId);
    const left = invitation === undefined ? -1 : remainingInviteUses(invitation) - batch.length;
    const isUsable = batch.every(
      ({ account }) => invitation !== undefined && isUsableBy(invitation, { account, now }),
    );
    if (left < 0 || !isUsable) {
      throw new ProtocolError('state_conflict', 'an invitation cannot be used any more');
    }
    return { inviteId, uses: batch.length, isOver: left === 0 };
  });
}
