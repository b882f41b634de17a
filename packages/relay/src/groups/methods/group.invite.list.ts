import { checkGroupParams, isGroupManager } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { readInGroup } from '../chain/group-transactions.ts';
import { requireMember } from '../chain/require-member.ts';
import { fittingRows, readCursor, traversalOf, writeCursor } from '../reading/list-cursors.ts';
import { type ListedInvitation, listInvites, readInviteTexts } from '../requests/invite-store.ts';

/** The scope of every invitation; any other scope is the account that issued those it shows. */
const allIssuers = 'all';

/** Names and numbers of an item, generously. */
const itemOverhead = 128;

/** `group.invite.list` (05 §13.11). */
export const groupInviteList: Handler<'group.invite.list'> = async (context, call) => {
  const { limits, network } = context;
  const session = call.session;
  checkGroupParams(network, 'group.invite.list', call.params);
  const { group_id: groupId, cursor, limit = limits.pageSize } = call.params;
  const groupCall = { session, groupId };
  const list = { list: 'invites', groupId } as const;
  const from = readCursor(cursor, list, 1);
  const pageSize = Math.min(limit, limits.maxPageSize);
  return await readInGroup(context, groupCall, async (tx, { now }) => {
    const { member } = await requireMember(tx, groupCall);
    const isManager = isGroupManager(member.role);
    const traversal = traversalOf(from, {
      scope: isManager ? allIssuers : session.account,
      position: [''],
      covers: (scope) => isManager || scope === session.account,
    });
    const { scope } = traversal;
    const [after = ''] = traversal.after;
    const inviter = scope === allIssuers ? undefined : scope;
    const found = await listInvites(tx, groupId, { inviter, after, now, limit: pageSize + 1 });
    const bounds = { limit: pageSize, maxBytes: limits.pageBytes };
    const rows = fittingRows(found, bounds, rowSizes());
    const last = rows.length < found.length ? rows.at(-1) : undefined;
    const inviteIds = rows.map(({ inviteId }) => inviteId);
    const texts = await readInviteTexts(tx, groupId, inviteIds);
    return {
      result: {
        invites: rows.map((row) => itemOf(row, texts.get(row.inviteId))),
        certificates: certificatesOf(rows),
        next: last && writeCursor(list, { scope, after: [last.inviteId] }),
      },
    };
  });
};

/** Returns what each row adds to a page; a device's certificate counts once. */
function rowSizes(): (row: ListedInvitation) => number {
  const devices = new Set<string>();
  return ({ deviceId, certificate, bytes }) => {
    const isKnown = devices.has(deviceId);
    devices.add(deviceId);
    return bytes + itemOverhead + (isKnown ? 0 : Buffer.byteLength(certificate));
  };
}

function itemOf({ deviceId, uses }: ListedInvitation, text: string | undefined) {
  if (text === undefined) throw new Error('an invitation lacks its text');
  return { invite: new JsonText(text), signer_device_id: deviceId, uses };
}

/** Two versions of a device's certificate hold the same keys: either serves for all. */
function certificatesOf(rows: readonly ListedInvitation[]): JsonText[] {
  const texts = new Map(rows.map(({ deviceId, certificate }) => [deviceId, certificate]));
  return [...texts.values()].map((text) => new JsonText(text));
}
