import {
  type ChainEvent,
  checkChainEvent,
  checkGroupParams,
  ProtocolError,
  remainingInviteUses,
} from '@posthouse/protocol';
import { requireCaller } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import { loadGroup } from '../chain/load-group.ts';
import { writeLink } from '../chain/write-event.ts';
import {
  isCurrent,
  type KnownApplication,
  readApplications,
  readApplicationTexts,
} from '../requests/application-store.ts';
import { arrivalsOf, noRequest } from '../requests/approvals.ts';
import type { InviteUse } from '../requests/invite-store.ts';
import { verifyRecords } from '../requests/verify-requests.ts';

/** `group.application.approve` (05 §13.15). */
export const groupApplicationApprove: Handler<'group.application.approve'> = async (
  context,
  call,
) => {
  const { params } = call;
  checkGroupParams(context.network, 'group.application.approve', params);
  const { group_id: groupId, members } = params.approval;
  const accounts = members.map(({ account }) => account);
  const link = { kind: 'group.application.approval', body: params.approval } as const;
  const verified = await verifyApplications(context, call.session, {
    link,
    accounts,
  });
  return await writeLink(context, call, link, async (deciding) => {
    const pending = await readApplications(deciding.tx, groupId, accounts);
    const arrivals = arrivalsOf(params, deciding, { pending, verified });
    return { arrivals, uses: usesOf([...pending.values()], deciding.now) };
  });
};

/**
 * Verifies the applications again. Those that are missing are refused here already, behind rights
 * and head and before all else: who repeats an approval on a new head finds members where the
 * applications were, and MUST be told `not_found`.
 *
 * @returns digests of the verified ones, by account
 */
async function verifyApplications(
  context: RelayContext,
  session: DeviceSession,
  { link, accounts }: { readonly link: ChainEvent; readonly accounts: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const { clock, storage } = context;
  const { group_id: groupId } = link.body;
  await storage.read(async (tx) => {
    await requireCaller(tx, session, clock.now());
    const { view } = await loadGroup(tx, groupId, [session.account]);
    checkChainEvent(view, link, session.account);
    const applications = await readApplications(tx, groupId, accounts);
    if (accounts.some((account) => !applications.has(account))) throw noRequest();
  });
  return await verifyRecords(context, 'application', {
    accounts,
    read: async (tx, account) => {
      const texts = (await readApplicationTexts(tx, groupId, [account])).get(account);
      return texts && { account, record: texts.application, certificate: texts.certificate };
    },
  });
}

/**
 * How often each invitation is used, all of which it must still allow together.
 * @throws ProtocolError `state_conflict`
 */
function usesOf(applications: readonly KnownApplication[], now: number): readonly InviteUse[] {
  const uses: InviteUse[] = [];
  const byInvite = Map.groupBy(applications, ({ inviteId }) => inviteId);
  for (const [inviteId, some] of byInvite) {
    const [{ invitation }] = some as [KnownApplication];
    const left = remainingInviteUses(invitation) - some.length;
    if (left < 0 || !some.every((application) => isCurrent(application, now))) {
      throw new ProtocolError('state_conflict', 'an invitation cannot be used any more');
    }
    uses.push({ inviteId, uses: some.length, isOver: left === 0 });
  }
  return uses;
}
