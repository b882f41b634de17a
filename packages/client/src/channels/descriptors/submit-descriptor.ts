/** Submits descriptors and finds out their outcome (06 §10.4). */
import type { AccountCore } from '../../core.ts';
import { isRefusal } from '../../errors.ts';
import { recordEvents } from '../../events/event-log.ts';
import { noteFollowChange } from '../../own-devices/change-rows.ts';
import { recordStatus } from '../../sync/message-status.ts';
import { endedBy } from '../../sync/write-outcomes.ts';
import {
  adoptDescriptor,
  type ChannelRow,
  channelRow,
  isSameDescriptor,
  putChannel,
  putDescriptors,
  removeChannel,
} from '../channel-rows.ts';
import {
  type DescriptorWrite,
  dequeueWrite,
  isFinalRefusal,
  type PendingWrite,
} from '../outbox.ts';
import { resolveDescriptor } from '../timeline/channel-page.ts';

/**
 * Submits a pending descriptor until its outcome is known. After a conflict or a lost answer the
 * host's descriptor is resolved and compared (06 §10.4).
 *
 * @throws RelayRefused with the write removed; RelayUnreachable with the write still pending
 */
export async function submitDescriptor(
  core: AccountCore,
  {
    row,
    pending,
    isFresh,
  }: {
    readonly row: ChannelRow;
    readonly pending: PendingWrite<DescriptorWrite>;
    /** Whether it is submitted for the first time. */
    readonly isFresh: boolean;
  },
  signal: AbortSignal,
): Promise<void> {
  const { value } = pending;
  if (!isFresh && (await isStoredByHost(core, row, { value, signal })))
    return await settleAccepted(core, pending);
  try {
    await send(core, row, { value, signal });
  } catch (error) {
    // Refused, or accepted by this or an earlier attempt: the host's descriptor decides.
    if (await isStoredByHost(core, row, { value, signal }))
      return await settleAccepted(core, pending);
    if (isFinalRefusal(error) || isRefusal(error, 'rate_limited'))
      await settleRefused(core, pending, isFresh ? undefined : error);
    throw error;
  }
  await settleAccepted(core, pending);
}

interface Submission {
  readonly value: DescriptorWrite;
  readonly signal: AbortSignal;
}

async function send(
  core: AccountCore,
  { relay_id }: ChannelRow,
  { value, signal }: Submission,
): Promise<void> {
  const relay = core.relay(relay_id);
  const options = { signal, repeat: 'unsent' } as const;
  switch (value.write) {
    case 'create':
      await relay.call('channel.create', value.descriptor, options);
      return;
    case 'update':
      await relay.call('channel.update', value.descriptor, options);
      return;
    case 'close':
      await relay.call('channel.close', value.close, options);
  }
}

/** Whether the host has this descriptor under its revision. */
async function isStoredByHost(
  core: AccountCore,
  row: ChannelRow,
  { value: { descriptor }, signal }: Submission,
): Promise<boolean> {
  try {
    const { revision } = descriptor;
    return isSameDescriptor(await resolveDescriptor(core, row, { revision, signal }), descriptor);
  } catch (error) {
    if (isRefusal(error, 'not_found')) return false;
    throw error;
  }
}

/** Removes an accepted write from the outbox and adopts its descriptor. */
async function settleAccepted(
  core: AccountCore,
  pending: PendingWrite<DescriptorWrite>,
): Promise<void> {
  const { write, descriptor } = pending.value;
  await core.store.write(async (tx) => {
    await dequeueWrite(tx, pending);
    const row = await channelRow(tx, pending.value.descriptor.channel_id);
    if (row === undefined) return;
    if (write !== 'create') {
      await adoptDescriptor(tx, row, descriptor);
      return;
    }
    // Another program on this store may have settled it meanwhile and read further.
    if (row.standing !== 'creating') return;
    await putDescriptors(tx, [descriptor]);
    const span = { first: 0, position: -1 };
    const changedAt = core.clock.milliseconds();
    await putChannel(tx, { ...row, standing: 'followed', descriptor, span, changedAt });
    await noteFollowChange(tx, row.channel_id);
    await recordEvents(tx, [{ kind: 'channel-followed', channelId: row.channel_id }]);
  });
  if (write === 'create') core.wakeSignal.wake();
}

/** Removes a refused write from the outbox, and the channel if it was not created. */
async function settleRefused(
  core: AccountCore,
  pending: PendingWrite<DescriptorWrite>,
  /** Given if no caller waits for it. */
  error: unknown,
): Promise<void> {
  const { write, descriptor } = pending.value;
  await core.store.write(async (tx) => {
    if (!(await dequeueWrite(tx, pending))) return;
    if (error !== undefined) {
      const conversation = { kind: 'channel', id: descriptor.channel_id } as const;
      await recordStatus(tx, { conversation, write, ...endedBy(error) });
    }
    if (pending.value.write !== 'create') return;
    const row = await channelRow(tx, pending.value.descriptor.channel_id);
    if (row?.standing === 'creating') await removeChannel(tx, pending.value.descriptor.channel_id);
  });
}
