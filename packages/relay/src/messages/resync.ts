import { readHintTargets } from '../accounts/index.ts';
import type { AccountResync } from '../dispatch/module.ts';
import type { Notice } from '../dispatch/notice.ts';
import { readHeads } from './store.ts';

/** Where the timelines end, for who may not have heard of it (04 section 19). */
export const timelineResync: AccountResync = async (tx, accounts, place) => {
  const audiences = await readHintTargets(tx, accounts, place);
  const heads = await readHeads(tx, [...audiences.keys()]);
  const notices: Notice[] = [];
  for (const [account, { deviceIds }] of audiences) {
    const head = heads.get(account);
    if (head !== undefined) notices.push({ kind: 'timeline', account, head, deviceIds });
  }
  return notices;
};
