import type { SubscriptionResync } from '../../dispatch/module.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { readGroupHeads, readManagersOf } from './subscription-store.ts';

/**
 * Makes the notices of groups that subscribers may have missed: the heads of timelines (05 §15.2).
 * Lists have no version, so after a gap managers are notified that their lists may have changed.
 */
export const groupResync: SubscriptionResync = {
  kind: 'group',
  notices: async (tx, groups, { withLists }) => {
    const notices: Notice[] = [];
    for (const head of await readGroupHeads(tx, groups)) {
      notices.push({ kind: 'group-timeline', ...head });
    }
    if (!withLists) return notices;
    for (const [group, accounts] of await readManagersOf(tx, groups)) {
      notices.push({ kind: 'group-applications', group, accounts });
      notices.push({ kind: 'group-recoveries', group, accounts });
    }
    return notices;
  },
};
