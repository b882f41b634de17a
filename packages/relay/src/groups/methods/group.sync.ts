import { badRequest, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { pageSize } from '../../pages/fill-page.ts';
import { noticeLoss } from '../chain/loss-store.ts';
import { readEventPage } from '../reading/event-page.ts';
import { whatOwnerSays } from '../reading/owner-reads.ts';
import { readGroupPage } from '../reading/read-access.ts';

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
    const read = { after, limit, now: context.clock.now() };
    const store = await whatOwnerSays(tx, reader, read);
    if (store !== undefined) {
      if (writer === undefined) return undefined;
      await store(writer);
    }
    const bounds = { after, ...pageSize(limits, limit) };
    return { result: { ...(await readEventPage(tx, reader, bounds)) } };
  });
};
