/** What subscribed connections must hear (05 §15), with recipients as the commit saw them. */
import { type GroupRole, mayViewRecovery } from '@posthouse/protocol';
import type { Notice } from '../../dispatch/notice.ts';
import type { Reader } from '../../storage/types.ts';
import { readManagers, type StoredGroup } from './group-store.ts';

/** The timeline has a new event: for subscribed connections that may read (05 §15.2). */
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

/** The list of applications changed: for owner and administrators (05 §15.3). */
export async function applicationsNotice(tx: Reader, groupId: string): Promise<Notice> {
  const managers = await readManagers(tx, groupId);
  const accounts = managers.map(({ account }) => account);
  return { kind: 'group-applications', group: groupId, accounts };
}

/** Whose request it is, or was, and the role that account has, or had. */
export interface Requester {
  readonly account: string;
  readonly role: GroupRole;
  /** Whether the account may still read the group. */
  readonly isMember: boolean;
}

/**
 * Lists of recovery requests changed: for who may process one of them, and the requesters that
 * still may read (05 §15.4). Whoever may process a request of another may view it, and the other
 * way round, so that both scopes of 15.4 are this one.
 */
export async function recoveriesNotice(
  tx: Reader,
  groupId: string,
  requesters: readonly Requester[],
): Promise<Notice> {
  const managers = await readManagers(tx, groupId);
  const mayView = ({ account, role }: { account: string; role: GroupRole }) =>
    requesters.some((other) =>
      mayViewRecovery(role, { role: other.role, isSelf: other.account === account }),
    );
  const accounts = new Set([
    ...managers.filter(mayView).map(({ account }) => account),
    ...requesters.filter(({ isMember }) => isMember).map(({ account }) => account),
  ]);
  return { kind: 'group-recoveries', group: groupId, accounts: [...accounts] };
}
