import { checkGroupParams, openAccessAfter, ProtocolError } from '@posthouse/protocol';
import { requireCaller } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import { forEach } from '../../storage/in-lists.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { openInterval } from '../chain/access-store.ts';
import { readSubscribable, type Subscribable } from '../reading/subscription-store.ts';

/** `group.subscribe` (05 §13.29, 02 §13). */
export const groupSubscribe: Handler<'group.subscribe'> = async (context, call) => {
  const { limits, network } = context;
  const { connection } = call;
  checkGroupParams(network, 'group.subscribe', call.params);
  const { group_ids: wanted } = call.params;
  const session = call.session;
  const request = {
    kind: 'group',
    ids: wanted,
    limit: limits.groupSubscriptions,
    perAccount: limits.subscriptionsPerAccount,
    total: limits.subscriptions,
  } as const;
  // Over HTTP the method does not exist.
  await connection?.setSubscriptions(request, async () => {
    const groups = await confirm(context, session, wanted);
    return new Map(groups.map(({ groupId, sequence }) => [groupId, sequence]));
  });
  return { result: null };
};

/** Confirms that the device may read all groups, and opens the intervals that it lacks. */
async function confirm(
  { clock, storage }: RelayContext,
  session: DeviceSession,
  wanted: readonly string[],
): Promise<readonly Subscribable[]> {
  const readGroups = async (tx: Reader) => {
    await requireCaller(tx, session, clock.now());
    return requireReadable(wanted, await readSubscribable(tx, wanted, session));
  };
  let groups = await storage.read(readGroups);
  let held = new Set<string>();
  for (;;) {
    const lacking = groups.filter(({ needsInterval }) => needsInterval);
    if (lacking.every(({ groupId }) => held.has(groupId))) return groups;
    // All in one write, also groups that lack an interval since the last read.
    held = held.union(new Set(lacking.map(({ groupId }) => groupId)));
    // With the account: its devices change before the intervals open, or find them open.
    const aggregates = [`account:${session.account}`, ...[...held].map((id) => `group:${id}`)];
    const open = async (tx: Writer) => {
      const found = await readGroups(tx);
      const opened = found.filter(({ needsInterval }) => needsInterval);
      if (!opened.every(({ groupId }) => held.has(groupId))) return found;
      await forEach(opened, async ({ groupId, ...at }) => {
        await openInterval(tx, groupId, { ...session, access: openAccessAfter(at) });
      });
      return found;
    };
    groups = await storage.write(aggregates, open, { keepsFacts: true });
  }
}

/**
 * Requires that all groups can be subscribed; the error names those that cannot.
 * @throws ProtocolError `not_found`, `forbidden`, with `group_ids`
 */
function requireReadable(
  wanted: readonly string[],
  found: ReadonlyMap<string, Subscribable>,
): readonly Subscribable[] {
  const groups = wanted.map((id) => found.get(id));
  const refused = wanted.filter((_, index) => groups[index]?.isMember !== true);
  if (refused.length === 0) return groups as readonly Subscribable[];
  const code = groups.includes(undefined) ? 'not_found' : 'forbidden';
  const data = { group_ids: refused };
  throw new ProtocolError(code, 'not every group can be subscribed', { data });
}
