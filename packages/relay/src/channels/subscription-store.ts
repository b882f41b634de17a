/** All SQL of subscriptions, which themselves are nowhere but in the process of their connection. */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader } from '../storage/types.ts';

/** Where the timelines of channels end, by channel; those that are not hosted here are missing. */
export async function readChannelHeads(
  tx: Reader,
  channelIds: readonly string[],
): Promise<Map<string, number>> {
  const heads = new Map<string, number>();
  for (const some of chunks(channelIds)) {
    const rows = await tx.all<{ channel_id: string; head: number }>(
      `SELECT channel_id, head FROM channels WHERE channel_id IN (${placeholders(some)})`,
      ...some,
    );
    for (const { channel_id, head } of rows) heads.set(channel_id, head);
  }
  return heads;
}
