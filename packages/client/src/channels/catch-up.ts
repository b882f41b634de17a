/** Catching up all channels, each on its own: one host that fails holds up no other. */
import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { isClientError } from '../errors.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { isContentWrite, isDescriptorWrite, isFinalRefusal, keptWrites } from './kept.ts';
import { submitDescriptor } from './manage.ts';
import { type ChannelRow, channelRow, channelRows } from './rows.ts';
import { submitContent, TooLate } from './submit.ts';
import { readChannel } from './sync.ts';

/**
 * Sends what waits, and reads channels.
 *
 * @param only these channels, and those with something unsettled; all by default
 * @throws ClientError where the home relay cannot be reached; what fails for one channel is an event
 */
export async function* catchUpChannels(
  core: AccountCore,
  signal: AbortSignal,
  only?: ReadonlySet<string>,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  for (const row of await core.store.read((tx) => channelRows(tx))) {
    const { channel_id } = row;
    try {
      yield* flushChannel(core, row, signal);
      const isWanted = only?.has(channel_id) !== false || row.hinted_head !== undefined;
      if (isWanted) yield* readChannel(core, channel_id, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
      if (isTemporary(error) && row.relay_id === (await core.home()).relayId) throw error;
      yield [{ kind: 'channel-failed', channel_id, error }];
    }
  }
}

/** Submits again, in order and unchanged, what has no answer yet. */
export async function* flushChannel(
  core: AccountCore,
  { channel_id }: ChannelRow,
  signal: AbortSignal,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  for (const kept of await core.store.read((tx) => keptWrites(tx, channel_id))) {
    const row = await core.store.read((tx) => channelRow(tx, channel_id));
    if (row === undefined) return;
    try {
      const submission = { row, isFresh: false };
      if (isDescriptorWrite(kept)) await submitDescriptor(core, { ...submission, kept }, signal);
      if (isContentWrite(kept)) await submitContent(core, { ...submission, kept }, signal);
    } catch (error) {
      if (!isFinalRefusal(error) && !(error instanceof TooLate)) throw error;
      const { write } = kept.value;
      yield [{ kind: 'channel-unsent', channel_id, write, reason: (error as Error).message }];
    }
  }
}
