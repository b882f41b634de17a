/** Catching up all channels, each on its own: one host that fails holds up no other. */
import type { AccountCore } from '../core.ts';
import { type ClientError, isClientError, isRefusal } from '../errors.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { isSilence } from '../hosted.ts';
import { submitDescriptor } from './descriptors.ts';
import { isContentWrite, isDescriptorWrite, isFinalRefusal, isKept, keptWrites } from './kept.ts';
import { type ChannelRow, channelRow, channelRows } from './rows.ts';
import { submitContent, TooLate } from './submit.ts';
import { readChannel } from './sync.ts';

/** Which channels are caught up. */
export interface ChannelScope {
  /** Only those of this host. */
  readonly host?: string | undefined;
  /** Only these, and those with something unsettled. */
  readonly only?: ReadonlySet<string> | undefined;
  /** Hosts that did not answer just now, which are not asked again for each of their channels. */
  readonly silent: Map<string, ClientError>;
}

/**
 * Sends what waits, and reads channels.
 * @throws ClientError where the home relay answers nothing; what fails for one channel is an event
 */
export async function* catchUpChannels(
  core: AccountCore,
  signal: AbortSignal,
  { host, only, silent }: ChannelScope,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  for (const row of await core.store.read((tx) => channelRows(tx))) {
    const { channel_id, relay_id } = row;
    if (host !== undefined && relay_id !== host) continue;
    try {
      const error = silent.get(relay_id);
      if (error !== undefined) throw error;
      yield* flushBeforeReading(core, row, signal);
      const isWanted = only?.has(channel_id) !== false || row.hinted_head !== undefined;
      if (isWanted) yield* readChannel(core, channel_id, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
      if (isSilence(error)) {
        if (relay_id === (await core.home()).relayId) throw error;
        silent.set(relay_id, error);
      }
      yield [{ kind: 'channel-failed', channel_id, error }];
    }
  }
}

/** {@link flushChannel}; what the host does not take for now holds up no reading. */
export async function* flushBeforeReading(
  core: AccountCore,
  row: ChannelRow,
  signal: AbortSignal,
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  try {
    yield* flushChannel(core, row, signal);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    yield [{ kind: 'channel-failed', channel_id: row.channel_id, error }];
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
  for (const kept of await core.store.read((tx) => keptWrites(tx, channel_id))) {
    if (core.sending.has(kept.key)) continue;
    const row = await core.store.read((tx) => channelRow(tx, channel_id));
    if (row === undefined) return;
    try {
      const submission = { row, isFresh: false };
      if (isDescriptorWrite(kept)) await submitDescriptor(core, { ...submission, kept }, signal);
      if (isContentWrite(kept)) await submitContent(core, { ...submission, kept }, signal);
    } catch (error) {
      const isLeft = await core.store.read((tx) => isKept(tx, kept));
      if (isLeft || !(isRefusal(error) || error instanceof TooLate || isFinalRefusal(error))) {
        throw error;
      }
      const { write } = kept.value;
      yield [{ kind: 'channel-unsent', channel_id, write, reason: (error as Error).message }];
    }
  }
}
