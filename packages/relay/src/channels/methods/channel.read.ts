import { badRequest } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { pageSize } from '../../pages/fill-page.ts';
import { requireChannel, type StoredChannel } from '../channel-store.ts';
import { type PageRange, readChannelPage } from '../page.ts';

/** `channel.read` (06 §8.11). A device that may call may read: channels are public. */
export const channelRead: Handler<'channel.read'> = async ({ limits, storage }, call) => {
  const { channel_id: channelId, before, after, limit } = call.params;
  if (before !== undefined && after !== undefined) {
    throw badRequest('after', 'cannot be given with before');
  }
  return await storage.read(async (tx) => {
    const range = rangeOf(await requireChannel(tx, channelId), { before, after });
    const page = await readChannelPage(tx, channelId, { ...range, ...pageSize(limits, limit) });
    return { result: { ...page } };
  });
};

/** @throws ProtocolError `bad_request` */
function rangeOf(
  { head }: StoredChannel,
  { before, after }: { readonly before: number | undefined; readonly after: number | undefined },
): PageRange {
  if (after === undefined)
    return { last: before === undefined ? head : Math.min(before - 1, head) };
  if (after > head) throw badRequest('after', 'is above the head of the timeline');
  return { after };
}
