/** The days (of the Unix epoch, UTC) whose bytes count. */
import type { RelayLimits } from '../limits.ts';

export const secondsOfDay = 86_400;

/**
 * Returns the first day whose bytes count for an account's total: what was stored before it was kept for
 * as long as it had to be.
 *
 * @param now Unix seconds
 */
export function firstCountedDay(
  limits: Pick<
    RelayLimits,
    'messageRetention' | 'groupMessageRetention' | 'channelTimelineRetention'
  >,
  now: number,
): number {
  const { messageRetention, groupMessageRetention, channelTimelineRetention } = limits;
  const kept = Math.max(messageRetention, groupMessageRetention, channelTimelineRetention);
  return Math.floor((now - kept) / secondsOfDay);
}
