/** Catching up the channels of one host: a channel that fails does not delay the others. */
import type { AccountCore } from '../core.ts';
import { isRefusal } from '../errors.ts';
import { recordPassing } from '../events/event-log.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { ReadBudget, type TimeLimit } from '../sync/budget.ts';
import type { HostVisit } from '../sync/host-visit.ts';
import { isDue, isolateFailure, rowsAtHost } from '../sync/hosted-rows.ts';
import { pendingOf } from '../sync/outbox.ts';
import { type ChannelRow, channelRow, channelRows } from './channel-rows.ts';
import { submitDescriptor } from './descriptors/submit-descriptor.ts';
import {
  channelOutbox,
  isContentWrite,
  isDescriptorWrite,
  isFinalRefusal,
  isPending,
} from './outbox.ts';
import { EditTooLate, submitContent } from './posts/submit-post.ts';
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
      : () => flushBeforeReading(core, row, visit.signal);
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
  { signal, isReached }: TimeLimit,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  yield* flushBeforeReading(core, row, signal);
  const budget = new ReadBudget(core.reading, isReached);
  yield* readChannel(core, row.channel_id, { signal, budget });
}

/** Runs {@link flushChannel}; a refusal becomes an event, and the channel is read anyway. */
async function* flushBeforeReading(
  core: AccountCore,
  row: ChannelRow,
  signal: AbortSignal,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  try {
    yield* flushChannel(core, row, signal);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const { channel_id: channelId } = row;
    const event = { kind: 'channel-failed', channelId, error } as const;
    await recordPassing(core, [event]);
    yield [event];
  }
}

/**
 * Submits pending writes again, in order and unchanged. A write that a caller is submitting right
 * now is left to that caller.
 */
export async function* flushChannel(
  core: AccountCore,
  { channel_id }: ChannelRow,
  signal: AbortSignal,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  for (const pending of await core.store.read((tx) => pendingOf(tx, channelOutbox, channel_id))) {
    if (core.sending.has(pending.key)) continue;
    const row = await core.store.read((tx) => channelRow(tx, channel_id));
    if (row === undefined) return;
    try {
      const submission = { row, isFresh: false };
      if (isDescriptorWrite(pending))
        await submitDescriptor(core, { ...submission, pending }, signal);
      if (isContentWrite(pending)) await submitContent(core, { ...submission, pending }, signal);
    } catch (error) {
      const isLeft = await core.store.read((tx) => isPending(tx, pending));
      if (isLeft || !(isRefusal(error) || error instanceof EditTooLate || isFinalRefusal(error))) {
        throw error;
      }
      const event = {
        kind: 'channel-write-unsent',
        channelId: channel_id,
        write: pending.value.write,
        reason: (error as Error).message,
      } as const;
      await recordPassing(core, [event]);
      yield [event];
    }
  }
}
