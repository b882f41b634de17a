/** Notices for subscribed connections (05 §15), with the recipients that the commit read. */
import { type GroupRole, mayViewRecovery } from '@posthouse/protocol';
import type { Notice } from '../../dispatch/notice.ts';
import type { Reader } from '../../storage/types.ts';
import { readManagers, type StoredGroup } from './group-store.ts';

/** Makes the notice of a new event, for subscribed connections that may read (05 §15.2). */
export function timelineNotice(
  group: Pick<StoredGroup, 'group_id' | 'sequence' | 'access_ended'>,
): Notice {
  return {
    kind: 'group-timeline',
    group: group.group_id,
    head: group.sequence,
    accessEnded: group.access_ended,
  };
}

/** Makes the notice of a changed list of applications, for owner and administrators (05 §15.3). */
export async function applicationsNotice(tx: Reader, groupId: string): Promise<Notice> {
  const managers = await readManagers(tx, groupId);
  const accounts = managers.map(({ account }) => account);
  return { kind: 'group-applications', group: groupId, accounts };
}

/** The account of a recovery request, with its role now or until it left. */
export interface Requester {
  readonly account: string;
  readonly role: GroupRole;
  /** Whether the account may still read the group. */
  readonly isMember: boolean;
}

/**
 * Makes the notice of changed recovery requests, for accounts that may process one of them and for
 * requesters that may still read (05 §15.4). An account may process another's request exactly if it
 * may view it, so both scopes of 15.4 are the same.
 */
export async function recoveriesNotice(
  tx: Reader,
  groupId: string,
  requesters: readonly Requester[],
): Promise<Notice> {
  const managers = await readManagers(tx, groupId);
  // Both may be thousands, so managers are compared with the roles of the requesters.
  const roles = new Set(requesters.map(({ role }) => role));
  const requesting = new Set(requesters.map(({ account }) => account));
  const mayView = ({ account, role }: { account: string; role: GroupRole }) =>
    requesting.has(account) ||
    [...roles].some((other) => mayViewRecovery(role, { role: other, isSelf: false }));
  const accounts = new Set([
    ...managers.filter(mayView).map(({ account }) => account),
    ...requesters.filter(({ isMember }) => isMember).map(({ account }) => account),
  ]);
  return { kind: 'group-recoveries', group: groupId, accounts: [...accounts] };
}
