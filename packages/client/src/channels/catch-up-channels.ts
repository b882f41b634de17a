/** Catching up the channels of one host, each on its own: one that fails holds up no other. */

import type { AccountCore } from '../core.ts';
import { isRefusal } from '../errors.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { byLastInterrupted, ReadBudget, type TimeLimit } from '../sync/budget.ts';
import type { HostVisit } from '../sync/host-visit.ts';
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
 * Sends what waits, and reads the channels of one host.
 *
 * @param only only these, and those with something unsettled; what was left with more to read has
 *   its turn when everything is read, whatever hints its host gives
 * @throws ClientError where the home relay answers nothing; what fails for one channel is an event
 */
export async function* catchUpChannels(
  core: AccountCore,
  visit: HostVisit,
  only: ReadonlySet<string> | undefined,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  const rows = await core.store.read((tx) => channelRows(tx));
  const hosted = rows.filter(({ relay_id }) => relay_id === visit.host);
  for (const row of hosted.sort(byLastInterrupted)) {
    const { channel_id } = row;
    const isHinted = only?.has(channel_id) === true || row.hinted_head !== undefined;
    const isWanted = only === undefined || (isHinted && row.leftAt === undefined);
    try {
      visit.throwIfUnavailable();
      yield* isWanted
        ? catchUpChannel(core, row, visit)
        : flushBeforeReading(core, row, visit.signal);
    } catch (error) {
      yield [{ kind: 'channel-failed', channelId: channel_id, error: visit.failureOf(error) }];
    }
  }
}

/** Sends what waits for one channel, and reads it. */
export async function* catchUpChannel(
  core: AccountCore,
  row: ChannelRow,
  { signal, isReached }: TimeLimit,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  yield* flushBeforeReading(core, row, signal);
  const allowance = new ReadBudget(core.reading, isReached);
  yield* readChannel(core, row.channel_id, { signal, allowance });
}

/** {@link flushChannel}; what the host does not take for now holds up no reading. */
async function* flushBeforeReading(
  core: AccountCore,
  row: ChannelRow,
  signal: AbortSignal,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  try {
    yield* flushChannel(core, row, signal);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    yield [{ kind: 'channel-failed', channelId: row.channel_id, error }];
  }
}

/**
 * Submits again, in order and unchanged, what has no answer yet; not what a caller is submitting
 * right now and will be told of.
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
      const { write } = pending.value;
      yield [
        {
          kind: 'channel-write-unsent',
          channelId: channel_id,
          write,
          reason: (error as Error).message,
        },
      ];
    }
  }
}
