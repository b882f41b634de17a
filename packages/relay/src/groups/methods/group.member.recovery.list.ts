import { checkGroupParams, type GroupRole, limits as protocolLimits } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { readInGroup } from '../chain/group-transactions.ts';
import { requireMember } from '../chain/require-member.ts';
import { fittingRows, readCursor, traversalOf, writeCursor } from '../reading/list-cursors.ts';
import { listRecoveries, readPendingRecoveries } from '../requests/recovery-store.ts';
import {
  type PendingRecovery,
  type RequestTexts,
  readRequestTexts,
} from '../requests/request-store.ts';

/** What members may see (05 §13.22), each scope within the one before. */
const scopes = ['all', 'members', 'own'] as const;
const scopeOf = { owner: 'all', administrator: 'members', member: 'own' } as const satisfies Record<
  GroupRole,
  (typeof scopes)[number]
>;

/** Certificate, names and numbers of an item, generously. */
const itemOverhead = protocolLimits.certificateBytes + 192;

/** `group.member.recovery.list` (05 §13.22). */
export const groupMemberRecoveryList: Handler<'group.member.recovery.list'> = async (
  context,
  call,
) => {
  const { limits, network } = context;
  checkGroupParams(network, 'group.member.recovery.list', call.params);
  const { group_id: groupId, cursor, limit = limits.pageSize } = call.params;
  const groupCall = { session: call.session, groupId };
  const list = { list: 'recoveries', groupId } as const;
  const from = readCursor(cursor, list, 1);
  const pageSize = Math.min(limit, limits.maxPageSize);
  return await readInGroup(context, groupCall, async (tx, { now }) => {
    const { member } = await requireMember(tx, groupCall);
    const scope = scopeOf[member.role];
    const covered: readonly string[] = scopes.slice(scopes.indexOf(scope));
    const right = { scope, position: [''], covers: (of: string) => covered.includes(of) };
    const traversal = traversalOf(from, right);
    const [after = ''] = traversal.after;
    const range = { scope: traversal.scope, own: member.account, after, now, limit: pageSize + 1 };
    const found = await readScope(tx, groupId, range);
    const bounds = { limit: pageSize, maxBytes: limits.pageBytes };
    const rows = fittingRows(found, bounds, ({ bytes }) => bytes + itemOverhead);
    const accounts = rows.map(({ account }) => account);
    const texts = await readRequestTexts(tx, { kind: 'recovery', groupId, accounts });
    const last = rows.length < found.length ? rows.at(-1) : undefined;
    return {
      result: {
        requests: rows.map((row) => itemOf(row, texts.get(row.account))),
        next: last && writeCursor(list, { ...traversal, after: [last.account] }),
      },
    };
  });
};

async function readScope(
  tx: Reader,
  groupId: string,
  range: {
    readonly scope: string;
    readonly own: string;
    readonly after: string;
    readonly now: number;
    readonly limit: number;
  },
): Promise<readonly PendingRecovery[]> {
  const { scope, own, after, now } = range;
  if (scope === 'own') {
    const pending = await readPendingRecoveries(tx, groupId, { accounts: [own], now });
    return [...pending.values()].filter(({ account }) => account > after);
  }
  const only = scope === 'members' ? ({ role: 'member', orOf: own } as const) : undefined;
  return await listRecoveries(tx, groupId, { ...range, only });
}

function itemOf({ acceptedAt, expiresAt }: PendingRecovery, texts: RequestTexts | undefined) {
  if (texts === undefined) throw new Error('a recovery request lacks its certificate');
  return {
    request: new JsonText(texts.text),
    signer_certificate: new JsonText(texts.certificate),
    accepted_at: acceptedAt,
    expires_at: expiresAt,
  };
}
