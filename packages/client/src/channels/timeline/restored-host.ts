/**
 * Channels whose host was put back to an earlier state (06 §8.12): descriptors and deletions that it
 * lost are published again, and nothing older takes their place here.
 */
import type { AccountCore } from '../../core.ts';
import type { ChannelAccountEvent } from '../../events.ts';
import {
  channelRow,
  deletedMessage,
  isRefusal,
  lastDescriptorChange,
  leavesOpen,
  listChannelEntries,
  mayWriteChannel,
  putChannel,
  readChannelPage,
  recordEvents,
  resolveDescriptor,
  signAsDevice,
} from '../../taken.ts';
import type { ChannelRow } from '../channel-rows.ts';
import { publishAgain } from '../descriptors/change-channel.ts';
import type { ChannelDeletionEntry } from './channel-entry.ts';
import type { ReadChannelPage } from './channel-page.ts';

/** Milliseconds between two times that a host's restore is looked into: it may say a new time always. */
const interval = 3_600_000;

/** Entries of a channel that are searched for own deletions that the host lost. */
const searched = 10_000;
const batchSize = 500;

/**
 * Finds out whether a host that was restored lost descriptors, and publishes again what this account
 * may publish: the newest descriptor, as the owner, and own deletions.
 *
 * @param options.restoredAt as the host said, Unix seconds
 * @returns the event about a lost descriptor, once for each restore
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour: it is tried again by the next read
 */
export async function noticeRestoredHost(
  core: AccountCore,
  row: ChannelRow,
  { restoredAt, signal }: { readonly restoredAt: number; readonly signal: AbortSignal },
): Promise<readonly ChannelAccountEvent[]> {
  const { channel_id: channelId, descriptor, restored } = row;
  const now = core.clock.milliseconds();
  const { readAt = Number.POSITIVE_INFINITY } = restored ?? {};
  const isRecent = now >= readAt && now - readAt < interval;
  if (row.standing === 'creating' || isRecent) return [];
  const found = await resolveDescriptor(core, row, { signal });
  const { revision } = found;
  const isLost = revision < descriptor.revision;
  // The host's operator learns of it: no other call names the revision that the host lost.
  if (isLost) await unlessRefused(() => askFor(core, row, descriptor.revision, signal));
  if (isLost && descriptor.creator === core.account) {
    // Another own device may have changed it since: then a person decides, with the next change.
    const isUnchanged = found.updated_at <= descriptor.updated_at;
    if (isUnchanged) await unlessRefused(() => publishAgain(core, row, { found, signal }));
  }
  if (row.closed_at === undefined) await unlessRefused(() => deleteAgain(core, row, signal));
  return await core.store.write(async (tx) => {
    const latest = await channelRow(tx, channelId);
    if (latest === undefined) return [];
    const isFirst = restored === undefined && !isLost;
    const mark = { at: restoredAt, ...(!isFirst && { readAt: now }) };
    await putChannel(tx, { ...latest, restored: mark });
    if (!isLost) return [];
    const events = [{ kind: 'channel-rollback', channelId, revision }] as const;
    await recordEvents(tx, events);
    return events;
  });
}

async function askFor(
  core: AccountCore,
  row: ChannelRow,
  revision: number,
  signal: AbortSignal,
): Promise<void> {
  await resolveDescriptor(core, row, { revision, signal });
}

/** Runs work that a host may refuse for good, without harm. */
async function unlessRefused(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isRefusal(error) || leavesOpen(error)) throw error;
  }
}

/** Deletes again what this account deleted and the host has again, newest first. */
async function deleteAgain(core: AccountCore, row: ChannelRow, signal: AbortSignal): Promise<void> {
  const { channel_id: channelId } = row;
  let before: number | undefined;
  for (let seen = 0; seen < searched; seen += batchSize) {
    const range = { ...(before !== undefined && { before }), limit: batchSize, newestFirst: true };
    const entries = await core.store.read((tx) => listChannelEntries(tx, channelId, range));
    for (const entry of entries) {
      if (entry.kind !== 'deletion' || entry.by !== core.account) continue;
      // What the host has, it has with everything before.
      if ((await eventAt(core, row, entry.sequence, signal))?.kind === 'delete') return;
      await deleteOnceMore(core, row, entry, signal);
    }
    if (entries.length < batchSize) return;
    before = entries.at(-1)?.sequence;
  }
}

async function deleteOnceMore(
  core: AccountCore,
  row: ChannelRow,
  { targetSequence, reason }: ChannelDeletionEntry,
  signal: AbortSignal,
): Promise<void> {
  const { network, device, store } = core;
  const { channel_id, relay_id } = row;
  const post = await eventAt(core, row, targetSequence, signal);
  if (post?.kind !== 'post') return;
  // The host may have given the sequence to another post, before it was restored with `posthouse`.
  const messageId = await store.read((tx) => deletedMessage(tx, channel_id, targetSequence));
  if (messageId !== post.payload.message_id) return;
  const deletion = {
    $type: network.type('channel.post.delete'),
    ...{ channel_id, target_sequence: targetSequence },
    ...(reason !== undefined && { reason }),
  };
  const params = signAsDevice(network, deletion, device);
  await core.relay(relay_id).call('channel.post.delete', params, { signal });
}

/** Reads the event at a sequence, if the host has it. */
async function eventAt(
  core: AccountCore,
  row: ChannelRow,
  sequence: number,
  signal: AbortSignal,
): Promise<ReadChannelPage['events'][number] | undefined> {
  const range = { after: sequence - 1, limit: 1 };
  try {
    const { events } = await readChannelPage(core, row, { range, signal });
    return events.find((event) => event.sequence === sequence);
  } catch (error) {
    if (isRefusal(error, 'bad_request')) return undefined;
    throw error;
  }
}

/**
 * Leaves out of a page what accounts wrote after they ceased to be moderators, by the newest descriptor
 * that was read: a host that was restored permits by an older one (06 §8.12).
 */
export async function withoutLostRights(
  core: AccountCore,
  { channel_id: channelId }: ChannelRow,
  page: ReadChannelPage,
): Promise<ReadChannelPage> {
  const change = await core.store.read((tx) => lastDescriptorChange(tx, channelId));
  if (change === undefined) return page;
  const newest = change.descriptor;
  const isRefused = ({ kind, sequence, descriptorRevision, account }: ReadEvent) =>
    (kind === 'post' || kind === 'edit' || kind === 'delete') &&
    sequence > change.sequence &&
    descriptorRevision < newest.revision &&
    !mayWriteChannel(newest, account);
  const refused = page.events.filter(isRefused).map(({ sequence }) => ({
    sequence,
    reason: `its author may not write since revision ${newest.revision}, which the host lost`,
  }));
  const events = page.events.filter((event) => !isRefused(event));
  return { ...page, events, refused: [...page.refused, ...refused] };
}

type ReadEvent = ReadChannelPage['events'][number];
