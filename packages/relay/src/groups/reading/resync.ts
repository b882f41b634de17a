import type { SubscriptionResync } from '../../dispatch/module.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { readGroupHeads, readManagersOf } from './subscription-store.ts';

/**
 * Where timelines of groups end, for who may not have heard of it (05 §15.2). Lists have no
 * version: after a gap, whoever may process what stands in them is told that they may have changed.
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
