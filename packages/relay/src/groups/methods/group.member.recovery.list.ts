import {
  checkGroupParams,
  currentMember,
  type GroupRole,
  limits as protocolLimits,
} from '@posthouse/protocol';
import { requireCaller } from '../../accounts/index.ts';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { loadGroup } from '../chain/load-group.ts';
import { fittingRows, readCursor, traversalOf, writeCursor } from '../reading/list-cursors.ts';
import {
  listRecoveries,
  type PendingRecovery,
  readPendingRecoveries,
  readRecoveryRecord,
} from '../requests/recovery-store.ts';

/** What members may see (05 §13.22), each part within the one before. */
const scopes = ['all', 'members', 'own'] as const;
const scopeOf = { owner: 'all', administrator: 'members', member: 'own' } as const satisfies Record<
  GroupRole,
  (typeof scopes)[number]
>;

/** Names and numbers of an item, generously. */
const itemOverhead = 192;

/** `group.member.recovery.list` (05 §13.22). */
export const groupMemberRecoveryList: Handler<'group.member.recovery.list'> = async (
  context,
  call,
) => {
  const { clock, limits, network, storage } = context;
  const session = call.session;
  checkGroupParams(network, 'group.member.recovery.list', call.params);
  const { group_id: groupId, cursor, limit = limits.pageSize } = call.params;
  const place = { list: 'recoveries', groupId } as const;
  const from = readCursor(cursor, place, 1);
  const most = Math.min(limit, limits.maxPageSize);
  return await storage.read(async (tx) => {
    const now = clock.now();
    await requireCaller(tx, session, now);
    const { view } = await loadGroup(tx, groupId, [session.account]);
    const scope = scopeOf[currentMember(view, session.account).role];
    const covered: readonly string[] = scopes.slice(scopes.indexOf(scope));
    const right = { scope, position: [''], covers: (of: string) => covered.includes(of) };
    const traversal = traversalOf(from, right);
    const [after = ''] = traversal.after;
    const range = { scope: traversal.scope, own: session.account, after, now, most: most + 1 };
    const found = await readScope(tx, groupId, range);
    const rows = fittingRows(found, { most, maxBytes: limits.pageBytes }, bytesOf);
    const requests = [];
    for (const row of rows) requests.push(await itemOf(tx, groupId, row));
    const last = rows.length < found.length ? rows.at(-1) : undefined;
    const next = last && writeCursor(place, { ...traversal, after: [last.account] });
    return { result: { requests, next } };
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
    readonly most: number;
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

function bytesOf({ bytes }: PendingRecovery): number {
  return bytes + protocolLimits.certificateBytes + itemOverhead;
}

async function itemOf(
  tx: Reader,
  groupId: string,
  { account, acceptedAt, expiresAt }: PendingRecovery,
) {
  const stored = await readRecoveryRecord(tx, groupId, account);
  if (stored === undefined) throw new Error('a recovery request lacks its certificate');
  return {
    request: new JsonText(stored.record),
    signer_certificate: new JsonText(stored.certificate),
    accepted_at: acceptedAt,
    expires_at: expiresAt,
  };
}
