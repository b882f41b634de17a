import { badRequest } from '../errors.ts';
import type { ChannelPage } from './events.ts';

/** Range asked for with `channel.read` (06 §8.11). */
export interface ChannelRange {
  /** Only sequences below. */
  readonly before?: number;
  /** Only sequences above; -1 from the creation on. */
  readonly after?: number;
  /** The largest number of events. */
  readonly limit?: number;
}

/**
 * Checks that a page is within the requested range, and that a page with `has_more` is not empty
 * (06 §8.11). `verifyChannelPage` checks order and content.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelPageBounds(channelPage, { after: -1, limit: 100 });
 */
export function checkChannelPageBounds(
  { events, has_more: hasMore }: ChannelPage,
  { before = Number.POSITIVE_INFINITY, after = -1, limit = Number.POSITIVE_INFINITY }: ChannelRange,
): void {
  if (hasMore && events.length === 0) throw badRequest('has_more', 'more of nothing');
  if (events.length > limit) throw badRequest('events', 'more than were asked for');
  if (events.some(({ sequence }) => sequence <= after || sequence >= before)) {
    throw badRequest('events', 'outside of the range asked for');
  }
}
