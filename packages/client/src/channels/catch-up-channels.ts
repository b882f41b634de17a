/** Catching up the channels of one host: a channel that fails does not delay the others. */
import type { AccountCore } from '../core.ts';
import { isRefusal } from '../errors.ts';
import { recordPassing } from '../events/event-log.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { type CatchUpLimit, ReadBudget } from '../sync/budget.ts';
import type { HostVisit } from '../sync/host-visit.ts';
import { isDue, isolateFailure, rowsAtHost } from '../sync/hosted-rows.ts';
import { type ChannelRow, channelRows } from './channel-rows.ts';
import { flushChannel, startChannel } from './send-waiting.ts';
import { readChannel } from './timeline/read-channel.ts';

/**
 * Sends the pending writes of one host's channels, and reads the channels.
 *
 * @param only reads these channels, and channels with an unread hint; all channels by default
 * @throws ClientError if the home relay does not answer; a failure of one channel is an event
 */
export async function* catchUpChannels(
  core: AccountCore,
  visit: HostVisit,
  only: ReadonlySet<string> | undefined,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  const rows = await core.store.read((tx) => channelRows(tx));
  for (const row of rowsAtHost(rows, visit.host)) {
    const { channel_id: id } = row;
    const work = isDue(row, only, { id, hasOpenWork: row.hinted_head !== undefined })
      ? () => catchUpChannel(core, row, visit)
      : () => flushBeforeReading(core, row, visit);
    yield* isolateFailure<ChannelAccountEvent>({ core, visit }, work, (error) => ({
      kind: 'channel-failed',
      channelId: id,
      error,
    }));
  }
}

/** Sends the pending writes of one channel, and reads it. */
export async function* catchUpChannel(
  core: AccountCore,
  row: ChannelRow,
  visit: CatchUpLimit,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  yield* flushBeforeReading(core, row, visit);
  const { signal, isReached } = visit;
  const budget = new ReadBudget(core.reading, isReached);
  yield* readChannel(core, row.channel_id, { signal, budget });
}

/** Sends the channel's waiting writes; a refusal becomes an event, and the channel is read anyway. */
async function* flushBeforeReading(
  core: AccountCore,
  row: ChannelRow,
  { signal, sendsInBackground }: CatchUpLimit,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  if (sendsInBackground) return await startChannel(core, row.channel_id);
  try {
    await flushChannel(core, row.channel_id, signal);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const { channel_id: channelId } = row;
    const event = { kind: 'channel-failed', channelId, error } as const;
    await recordPassing(core, [event]);
    yield [event];
  }
}
