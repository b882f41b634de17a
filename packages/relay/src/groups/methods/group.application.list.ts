import { checkGroupParams } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { readInGroup } from '../chain/group-transactions.ts';
import { requireManager } from '../chain/require-member.ts';
import { fittingRows, readCursor, traversalOf, writeCursor } from '../reading/list-cursors.ts';
import { listApplications } from '../requests/application-store.ts';
import {
  type PendingApplication,
  type RequestTexts,
  readRequestTexts,
} from '../requests/request-store.ts';

/** Names and numbers of an item, generously. */
const itemOverhead = 128;

/** `group.application.list` (05 §13.14). */
export const groupApplicationList: Handler<'group.application.list'> = async (context, call) => {
  const { limits, network } = context;
  checkGroupParams(network, 'group.application.list', call.params);
  const { group_id: groupId, cursor, limit = limits.pageSize } = call.params;
  const groupCall = { session: call.session, groupId };
  const list = { list: 'applications', groupId } as const;
  const from = readCursor(cursor, list, 2);
  const pageSize = Math.min(limit, limits.maxPageSize);
  return await readInGroup(context, groupCall, async (tx, { now }) => {
    await requireManager(tx, groupCall);
    // A caller with the right sees the whole list.
    const right = { scope: 'all', position: ['', ''], covers: () => true };
    const { scope, after } = traversalOf(from, right);
    const [inviteId = '', account = ''] = after;
    const range = { after: [inviteId, account], now, limit: pageSize + 1 } as const;
    const found = await listApplications(tx, groupId, range);
    const bounds = { limit: pageSize, maxBytes: limits.pageBytes };
    const rows = fittingRows(found, bounds, ({ bytes }) => bytes + itemOverhead);
    const last = rows.length < found.length ? rows.at(-1) : undefined;
    const accounts = rows.map((row) => row.account);
    const texts = await readRequestTexts(tx, { kind: 'application', groupId, accounts });
    return {
      result: {
        applications: rows.map((row) => itemOf(row, texts.get(row.account))),
        next: last && writeCursor(list, { scope, after: [last.inviteId, last.account] }),
      },
    };
  });
};

function itemOf({ acceptedAt }: PendingApplication, texts: RequestTexts | undefined) {
  if (texts === undefined) throw new Error('an application lacks its certificate');
  return {
    application: new JsonText(texts.text),
    signer_certificate: new JsonText(texts.certificate),
    accepted_at: acceptedAt,
  };
}
