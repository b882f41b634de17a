/** The SQL that only applications need: they count for their invitation, and are listed by it. */
import { forEach } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import { addPending, listAwaited } from './invite-store.ts';
import {
  deleteRequests,
  type NewRequest,
  type PendingApplication,
  requestColumns,
  writeRequest,
} from './request-store.ts';

/**
 * Stores an application.
 * @param replaced the invitation of the account's earlier application, which is replaced
 */
export async function writeApplication(
  tx: Writer,
  groupId: string,
  application: NewRequest<'application'>,
  replaced: string | undefined,
): Promise<void> {
  const { inviteId } = application;
  await writeRequest(tx, { kind: 'application', groupId }, application);
  if (replaced === inviteId) return;
  await addPending(tx, groupId, { inviteId, by: 1 });
  if (replaced !== undefined) await addPending(tx, groupId, { inviteId: replaced, by: -1 });
}

/** Deletes the applications of accounts; returns how many there were. */
export async function deleteApplications(
  tx: Writer,
  groupId: string,
  accounts: readonly string[],
): Promise<number> {
  const deleted = await deleteRequests(tx, { kind: 'application', groupId, accounts });
  const byInvite = Map.groupBy(deleted, ({ inviteId }) => inviteId);
  await forEach([...byInvite], async ([inviteId, { length }]) => {
    await addPending(tx, groupId, { inviteId, by: -length });
  });
  return deleted.length;
}

/**
 * Lists applications whose invitation can be used, in the order of their invitations and accounts.
 * In that order a page skips the applications of ended invitations without reading them.
 *
 * @param options `after`: invitation and account of the last application listed
 */
export async function listApplications(
  tx: Reader,
  groupId: string,
  options: {
    readonly after: readonly [inviteId: string, account: string];
    readonly now: number;
    readonly limit: number;
  },
): Promise<PendingApplication[]> {
  const { after, now, limit } = options;
  const [fromInvite, afterAccount] = after;
  // The first invitation may be listed to its end already.
  const awaited = await listAwaited(tx, groupId, { from: fromInvite, now, limit: limit + 1 });
  const found: PendingApplication[] = [];
  while (awaited.length > 0 && found.length < limit) {
    const missing = limit - found.length;
    const invites = takeUntil(awaited, missing);
    const lists = invites.map(() => [] as PendingApplication[]);
    await forEach([...invites.entries()], async ([index, { inviteId }]) => {
      const account = inviteId === fromInvite ? afterAccount : '';
      lists[index] = await readOfInvite(tx, groupId, { inviteId, after: account, limit: missing });
    });
    found.push(...lists.flat());
  }
  return found.slice(0, limit);
}

/** Removes the first invitations that together have so many applications, or all of them. */
function takeUntil<A extends { readonly pending: number }>(awaited: A[], count: number): A[] {
  let sum = 0;
  const last = awaited.findIndex(({ pending }) => {
    sum += pending;
    return sum >= count;
  });
  return awaited.splice(0, last === -1 ? awaited.length : last + 1);
}

async function readOfInvite(
  tx: Reader,
  groupId: string,
  range: { readonly inviteId: string; readonly after: string; readonly limit: number },
): Promise<PendingApplication[]> {
  return await tx.all<PendingApplication & Row>(
    `SELECT ${requestColumns('application')} FROM group_applications r
      WHERE r.group_id = ? AND r.invite_id = ? AND r.account > ?
      ORDER BY r.account LIMIT ?`,
    groupId,
    range.inviteId,
    range.after,
    range.limit,
  );
}
