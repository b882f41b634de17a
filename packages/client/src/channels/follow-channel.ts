/** Following a channel: its link, the first descriptor, and unfollowing. */
import { ChannelId, checkSchema, RelayId, Type } from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import { recordEvents } from '../events/event-log.ts';
import { decodeLink, encodeLink } from '../link-text.ts';
import { noteFollowChange } from '../own-devices/change-rows.ts';
import {
  adoptDescriptor,
  type ChannelRow,
  channelRow,
  putChannel,
  putDescriptors,
  requireChannel,
} from './channel-rows.ts';
import { removeTimeline } from './timeline/channel-entries.ts';
import type { ChannelRef } from './timeline/channel-page.ts';
import { currentDescriptor } from './timeline/read-channel.ts';

/** A channel's ID and its host. */
export interface ChannelAddress {
  readonly channelId: string;
  /** Relay ID of the host. */
  readonly relayId: string;
}

const LinkedChannel = Type.Object({ relay_id: RelayId, channel_id: ChannelId });

/**
 * Encodes a channel's address as one word of text, for links and QR codes. Nothing in it is
 * trusted: the channel's ID is bound to its host and creator, and the descriptor comes from the
 * host (06 §4).
 */
export function channelLink(core: AccountCore, { channel_id, relay_id }: ChannelRef): string {
  return encodeLink(core.network, 'channel', { relay_id, channel_id });
}

/** Decodes a link or an address. @throws ClientError `verification_failed` */
export function channelRefOf(core: AccountCore, address: string | ChannelAddress): ChannelRef {
  try {
    const channel: unknown =
      typeof address === 'string'
        ? decodeLink(core.network, 'channel', address)
        : { channel_id: address.channelId, relay_id: address.relayId };
    checkSchema(LinkedChannel, channel, 'channel');
    return channel;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'invalid';
    throw new ClientError('verification_failed', `channel address: ${reason}`, { cause });
  }
}

/** Where reading begins: at the latest page, or at the creation. */
export type FollowFrom = 'latest' | 'creation';

/**
 * Follows a channel, after its host returned a descriptor that verifies. A descriptor verified
 * earlier stays, so that a rollback is detected.
 *
 * @param options.changedAt Unix milliseconds at which another own device followed it
 * @throws ClientError `verification_failed`; RelayRefused `not_found`, RelayMisbehaviour
 */
export async function followChannel(
  core: AccountCore,
  channel: ChannelRef,
  options: { readonly from: FollowFrom; readonly changedAt?: number; readonly signal: AbortSignal },
): Promise<void> {
  const { from, changedAt, signal } = options;
  const descriptor = await currentDescriptor(core, channel, signal);
  const { channel_id } = channel;
  const before = await core.store.read((tx) => channelRow(tx, channel_id));
  if (changedAt === undefined && before !== undefined && before.standing !== 'left') return;
  // An interrupted removal may have left rows from an earlier time.
  await clearTimeline(core, channel_id);
  await core.store.write(async (tx) => {
    const known = await channelRow(tx, channel_id);
    // A later decision may have been made while the host answered.
    const at = decidedAt(core, known, changedAt);
    if (at === undefined) return;
    if (known !== undefined && known.standing !== 'left') {
      if (changedAt !== undefined) await putChannel(tx, { ...known, changedAt: at });
      return;
    }
    const span = from === 'creation' ? { span: { first: 0, position: -1 } } : {};
    const fresh = { ...channel, descriptor: known?.descriptor ?? descriptor };
    const row: ChannelRow = { ...fresh, standing: 'followed', changedAt: at, ...span };
    await putChannel(tx, row);
    await putDescriptors(tx, [row.descriptor]);
    await adoptDescriptor(tx, row, descriptor);
    await recordEvents(tx, [{ kind: 'channel-followed', channelId: channel_id }]);
    if (changedAt === undefined) await noteFollowChange(tx, channel_id);
  });
  // A running `follow` of the account subscribes the channel now.
  core.wakeSignal.wake();
}

/**
 * Stops reading a channel and removes its timeline.
 *
 * @param options.changedAt Unix milliseconds at which another own device unfollowed it
 * @throws ClientError `unknown_channel`
 */
export async function unfollowChannel(
  core: AccountCore,
  channelId: string,
  { changedAt }: { readonly changedAt?: number } = {},
): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await requireChannel(tx, channelId);
    if (row.standing === 'creating') {
      throw new ClientError(
        'invalid_input',
        'the channel is still being created: synchronize, then try again',
      );
    }
    const at = decidedAt(core, row, changedAt);
    if (at === undefined) return;
    const { span: _read, closed_at: _end, hinted_head: _hint, ...rest } = row;
    await putChannel(tx, { ...rest, standing: 'left', changedAt: at });
    if (changedAt === undefined) await noteFollowChange(tx, channelId);
  });
  await clearTimeline(core, channelId);
}

/**
 * Returns the time of a decision, in Unix milliseconds: one made here is later than all before it,
 * also than one of a device whose clock is ahead. `undefined` for one of another device that is not
 * later than what is stored.
 */
function decidedAt(
  { clock }: AccountCore,
  row: ChannelRow | undefined,
  elsewhere: number | undefined,
): number | undefined {
  const last = row?.changedAt ?? 0;
  if (elsewhere === undefined) return Math.max(clock.milliseconds(), last + 1);
  return row === undefined || elsewhere > last ? elsewhere : undefined;
}

/** Removes a channel's timeline batch by batch, unless it is followed again meanwhile. */
async function clearTimeline({ store }: AccountCore, channelId: string): Promise<void> {
  const hasMore = () =>
    store.write(async (tx) => {
      const row = await channelRow(tx, channelId);
      return row?.standing !== 'followed' && (await removeTimeline(tx, channelId));
    });
  while (await hasMore());
}
