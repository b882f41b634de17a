import { badRequest } from '@posthouse/protocol';
import { confirmDevice } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { pageSize } from '../../pages/fill-page.ts';
import { readTimelinePage } from '../page.ts';
import { readBounds } from '../page-store.ts';

/**
 * `message.timeline.sync` (04 section 18): reads the timeline stored here, even if the account is
 * not at home here any more.
 */
export const messageTimelineSync: Handler<'message.timeline.sync'> = async (context, call) => {
  const { session } = call;
  const { clock, limits, storage } = context;
  const { after = -1, limit } = call.params;
  const now = clock.now();
  return await storage.read(async (tx) => {
    await confirmDevice(context, tx, { session, now });
    const { head, gap } = await readBounds(tx, session);
    if (after > head) throw badRequest('after', 'is above the head of the timeline');
    const page = await readTimelinePage(tx, session, { after, ...pageSize(limits, limit) });
    return { result: { ...page, ...(gap > after ? { has_retention_gap: true } : {}) } };
  });
};
