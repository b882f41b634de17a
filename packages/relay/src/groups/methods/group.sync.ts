import { badRequest, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { pageSize } from '../../pages/fill-page.ts';
import type { Reader } from '../../storage/types.ts';
import { endWaiting } from '../chain/hand-back.ts';
import { noticeLoss, readLosses } from '../chain/loss-store.ts';
import { readEventPage } from '../reading/event-page.ts';
import { type GroupReader, readGroupPage } from '../reading/read-access.ts';

/** `group.sync` (05 §13.4). */
export const groupSync: Handler<'group.sync'> = async (context, call) => {
  const { limits, network } = context;
  checkGroupParams(network, 'group.sync', call.params);
  const { group_id: groupId, after = -1, limit } = call.params;
  const groupCall = { session: call.session, groupId };
  return await readGroupPage(context, groupCall, async (reader, tx, writer) => {
    if (after > reader.group.stored.sequence) {
      throw badRequest('after', 'is above the head of the timeline');
    }
    if (limit === 1) await noticeLoss(context, tx, { group: reader.group.stored, after });
    if (await endsWaiting(tx, reader, after)) {
      if (writer === undefined) return undefined;
      await endWaiting(writer, reader.group.stored);
    }
    const bounds = { after, ...pageSize(limits, limit) };
    return { result: { ...(await readEventPage(tx, reader, bounds)) } };
  });
};

/**
 * Whether a read tells a restored host that it lost nothing of the group: the owner, who knows of no more
 * changes, reads on after the event of the restore (05 §5.6).
 */
async function endsWaiting(
  tx: Reader,
  { caller, group: { stored } }: GroupReader,
  after: number,
): Promise<boolean> {
  if (stored.held_until === null || stored.owner !== caller.account) return false;
  const losses = await readLosses(tx, stored.group_id, { now: 0 });
  return after >= (losses.at(-1)?.end ?? 0);
}
