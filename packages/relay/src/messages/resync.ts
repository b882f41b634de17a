import { readHintTargets } from '../accounts/index.ts';
import type { AccountResync } from '../dispatch/module.ts';
import type { Notice } from '../dispatch/notice.ts';
import { readHeads } from './store.ts';

/** Reads the heads of timelines, for clients that may have missed a notice (04 section 19). */
export const timelineResync: AccountResync = async (tx, accounts, at) => {
  const targets = await readHintTargets(tx, accounts, at);
  const heads = await readHeads(tx, [...targets.keys()]);
  const notices: Notice[] = [];
  for (const [account, { deviceIds }] of targets) {
    const head = heads.get(account);
    if (head !== undefined) notices.push({ kind: 'timeline', account, head, deviceIds });
  }
  return notices;
};
