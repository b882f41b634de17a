import type { AccountResync } from '../dispatch/module.ts';
import type { Notice } from '../dispatch/notice.ts';
import { readHintTargets } from './store.ts';

/** Which device state is in force, for clients that may have missed it (03 section 6). */
export const deviceStateResync: AccountResync = async (tx, accounts, place) => {
  const notices: Notice[] = [];
  for (const [account, audience] of await readHintTargets(tx, accounts, place)) {
    notices.push({ kind: 'device-state', account, ...audience });
  }
  return notices;
};
