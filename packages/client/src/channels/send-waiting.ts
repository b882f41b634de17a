/** Sends what waits for a channel, in the order of writing (06 §10.4). */
import { mayWriteChannel } from '@posthouse/protocol';
import { untilAborted } from '../connect/deadline.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import { recordStatus } from '../sync/message-status.ts';
import { pendingOf } from '../sync/outbox.ts';
import { reachRelay } from '../sync/reach-relay.ts';
import type { SendWork } from '../sync/sender.ts';
import { endedBy, type Outgoing } from '../sync/write-outcomes.ts';
import { type ChannelRow, channelRow } from './channel-rows.ts';
import { submitDescriptor } from './descriptors/submit-descriptor.ts';
import {
  type ContentWrite,
  channelOutbox,
  endWrite,
  isContentWrite,
  isDescriptorWrite,
  isFinalRefusal,
  isPending,
  isSameWrite,
  type PendingWrite,
  statusSubject,
  writeIdOf,
} from './outbox.ts';
import { EditTooLate, submitContent } from './posts/submit-post.ts';
import { currentDescriptor } from './timeline/read-channel.ts';

/** Returns a channel, and how what waits for it is sent. */
export function outgoingToChannel(core: AccountCore, channelId: string): Outgoing {
  const work = sendWaitingToChannel(core, channelId);
  return { id: channelId, lane: `channel/${channelId}`, work };
}

/**
 * Sends the waiting writes of a channel and waits until they have answers, if there are any.
 * @throws what leaves them without an answer
 */
export async function flushChannel(
  core: AccountCore,
  channelId: string,
  signal: AbortSignal,
): Promise<void> {
  const waiting = await core.store.read((tx) => pendingOf(tx, channelOutbox, channelId));
  if (waiting.length === 0) return;
  const { lane, work } = outgoingToChannel(core, channelId);
  await untilAborted(core.sender.run(lane, work), signal);
}

/** Has what waits for a channel sent in the background. */
export async function startChannel(core: AccountCore, channelId: string): Promise<void> {
  const waiting = await core.store.read((tx) => pendingOf(tx, channelOutbox, channelId));
  if (waiting.length === 0) return;
  const { lane, work } = outgoingToChannel(core, channelId);
  core.sender.start(lane, work);
}

/**
 * Returns the work that submits what waits for a channel, in order and unchanged. A write that is
 * refused for good is given up, and the next one goes on; any other failure ends the run.
 */
function sendWaitingToChannel(core: AccountCore, channelId: string): SendWork {
  return async (signal) => {
    for (;;) {
      signal.throwIfAborted();
      const { row, pending } = await core.store.read(async (tx) => ({
        row: await channelRow(tx, channelId),
        pending: (await channelOutbox.list(tx, { prefix: `${channelId}/`, limit: 1 }))[0],
      }));
      if (row === undefined || pending === undefined) return;
      let failure: unknown;
      try {
        await submitHead(core, { row, pending }, signal);
      } catch (error) {
        const isLeft = await core.store.read((tx) => isPending(tx, pending));
        if (isLeft || !isFinal(error)) throw error;
        failure = error;
      }
      if (isContentWrite(pending)) core.sender.answered(writeIdOf(pending.value), failure);
    }
  };
}

function isFinal(error: unknown): boolean {
  const isOwn = isClientError(error, 'not_permitted') || error instanceof EditTooLate;
  return isOwn || isRefusal(error) || isFinalRefusal(error);
}

async function submitHead(
  core: AccountCore,
  { row, pending }: { readonly row: ChannelRow; readonly pending: PendingWrite },
  signal: AbortSignal,
): Promise<void> {
  if (isDescriptorWrite(pending)) {
    return await submitDescriptor(core, { row, pending, isFresh: false }, signal);
  }
  if (!isContentWrite(pending)) return;
  const submission = await takeTurn(core, { row, pending }, signal);
  if (submission !== undefined) await submitContent(core, { row, ...submission }, signal);
}

/**
 * Marks a waiting write as sent, once the host is connected and the account may write; from then on
 * it cannot be cancelled.
 *
 * @returns whether this is its first request; `undefined` if it was cancelled
 */
async function takeTurn(
  core: AccountCore,
  { row, pending }: { readonly row: ChannelRow; readonly pending: PendingWrite<ContentWrite> },
  signal: AbortSignal,
): Promise<
  { readonly pending: PendingWrite<ContentWrite>; readonly isFresh: boolean } | undefined
> {
  const { key, value } = pending;
  if (value.waiting === undefined) return { pending, isFresh: false };
  await reachRelay(core, core.relay(row.relay_id), signal);
  try {
    await requireWriter(core, row, signal);
  } catch (error) {
    if (isClientError(error, 'not_permitted')) {
      await core.store.write((tx) => endWrite(tx, row.channel_id, { pending, ...endedBy(error) }));
    }
    throw error;
  }
  const { waiting: _sent, ...written } = value;
  const sent = { ...written, sent_at: unixSeconds(core.clock) };
  return await core.store.write(async (tx) => {
    const latest = await channelOutbox.get(tx, key);
    if (latest === undefined || !isSameWrite(latest, value)) return undefined;
    const isFresh = 'waiting' in latest;
    if (isFresh) {
      await channelOutbox.put(tx, key, sent);
      const conversation = { kind: 'channel', id: row.channel_id } as const;
      await recordStatus(tx, { conversation, ...statusSubject(sent), status: 'sending' });
    }
    return { pending: { key, value: sent }, isFresh };
  });
}

/**
 * Checks that the account may write to a channel, by its verified descriptor.
 * @throws ClientError `not_permitted`
 */
async function requireWriter(
  core: AccountCore,
  row: ChannelRow,
  signal: AbortSignal,
): Promise<void> {
  if (mayWriteChannel(row.descriptor, core.account) && row.descriptor.status === 'active') return;
  const descriptor = await currentDescriptor(core, row, signal);
  if (descriptor.status === 'closed') throw closedChannel();
  if (!mayWriteChannel(descriptor, core.account)) {
    throw new ClientError(
      'not_permitted',
      'only the owner and moderators can write: ask the owner',
    );
  }
}

export function closedChannel(): ClientError {
  return new ClientError('not_permitted', 'the channel is closed: nothing can be written to it');
}
