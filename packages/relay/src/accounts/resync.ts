import type { AccountResync } from '../dispatch/module.ts';
import type { Notice } from '../dispatch/notice.ts';
import { readHintTargets } from './store.ts';

/** Which device state is in force, for clients that may have missed it (03 section 6). */
export const deviceStateResync: AccountResync = async (tx, accounts, at) => {
  const notices: Notice[] = [];
  for (const [account, target] of await readHintTargets(tx, accounts, at)) {
    notices.push({ kind: 'device-state', account, ...target });
  }
  return notices;
};
