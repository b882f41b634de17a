/** Reading channels again after their host was put back to an earlier state (06 §8.11). */
import { lowerMarks } from '../../conversations/conversation-rows.ts';
import type { StoreWriter } from '../../store/index.ts';
import { type ChannelRow, channelRow, channelRows, putChannel } from '../channel-rows.ts';
import { lastDescriptorChange } from './channel-entries.ts';

/**
 * Moves the position back to the last change of the descriptor, or to the beginning of the stored
 * part, so that events to which the host gave the lost sequences are read.
 *
 * @returns whether there is something to read again
 */
export async function rewindChannel(tx: StoreWriter, from: ChannelRow): Promise<boolean> {
  const row = await channelRow(tx, from.channel_id);
  // Another reader of this store may have moved the position.
  if (row?.span === undefined || row.span.position !== from.span?.position) return false;
  const { first } = row.span;
  const change = await lastDescriptorChange(tx, row.channel_id);
  const position = Math.max(first - 1, change?.sequence ?? -1);
  if (position >= row.span.position) return false;
  await putChannel(tx, { ...row, span: { first, position }, rollback: true });
  await lowerMarks(tx, { kind: 'channel', id: row.channel_id }, position);
  return true;
}

/** Rewinds every channel of a host. */
export async function rewindChannelsOf(tx: StoreWriter, relayId: string): Promise<void> {
  for (const row of await channelRows(tx)) {
    if (row.relay_id === relayId) await rewindChannel(tx, row);
  }
}
