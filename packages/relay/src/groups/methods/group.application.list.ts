import { checkGroupParams } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { requireManager } from '../chain/require-member.ts';
import { fittingRows, readCursor, traversalOf, writeCursor } from '../reading/list-cursors.ts';
import {
  type ApplicationTexts,
  type ListedApplication,
  listApplications,
  readApplicationTexts,
} from '../requests/application-store.ts';

/** Names and numbers of an item, generously. */
const itemOverhead = 128;

/** `group.application.list` (05 §13.14). */
export const groupApplicationList: Handler<'group.application.list'> = async (context, call) => {
  const { clock, limits, network, storage } = context;
  const session = call.session;
  checkGroupParams(network, 'group.application.list', call.params);
  const { group_id: groupId, cursor, limit = limits.pageSize } = call.params;
  const place = { list: 'applications', groupId } as const;
  const from = readCursor(cursor, place, 2);
  const most = Math.min(limit, limits.maxPageSize);
  const now = clock.now();
  return await storage.read(async (tx) => {
    await requireManager(tx, session, { groupId, now });
    // Whoever sees the list sees all of it.
    const right = { scope: 'all', position: ['', ''], covers: () => true };
    const { scope, after } = traversalOf(from, right);
    const [inviteId = '', account = ''] = after;
    const range = { after: [inviteId, account], now, most: most + 1 } as const;
    const found = await listApplications(tx, groupId, range);
    const rows = fittingRows(found, { most, maxBytes: limits.pageBytes }, bytesOf);
    const last = rows.length < found.length ? rows.at(-1) : undefined;
    const accounts = rows.map((row) => row.account);
    const texts = await readApplicationTexts(tx, groupId, accounts);
    return {
      result: {
        applications: rows.map((row) => itemOf(row, texts.get(row.account))),
        next: last && writeCursor(place, { scope, after: [last.inviteId, last.account] }),
      },
    };
  });
};

function bytesOf({ bytes }: ListedApplication): number {
  return bytes + itemOverhead;
}

function itemOf({ acceptedAt }: ListedApplication, texts: ApplicationTexts | undefined) {
  if (texts === undefined) throw new Error('an application lacks its certificate');
  return {
    application: new JsonText(texts.application),
    signer_certificate: new JsonText(texts.certificate),
    accepted_at: acceptedAt,
  };
}
