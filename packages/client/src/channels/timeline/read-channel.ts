/**
 * Reading a channel from its host page by page. Each page is verified and committed before the next
 * one is requested (06 §8.11, §10.1).
 */
import {
  type ChannelDescriptor,
  type ChannelRange,
  emptyProjection,
  projectChannel,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { RelayMisbehaviour } from '../../errors.ts';
import { recordEvents } from '../../events/event-log.ts';
import type { ChannelAccountEvent } from '../../events.ts';
import type { StoreWriter } from '../../store/index.ts';
import { ReadBudget } from '../../sync/budget.ts';
import { markInterrupted } from '../../sync/hosted-rows.ts';
import { restoredAtOf } from '../../sync/reach-relay.ts';
import { runToEnd } from '../../sync/run-to-end.ts';
import {
  adoptDescriptor,
  type ChannelRow,
  channelRow,
  channels,
  isSameDescriptor,
  requireChannel,
  shouldReadChannel,
} from '../channel-rows.ts';
import {
  type AppliedChannelPage,
  applyChannelPage,
  type Direction,
  gapsOf,
} from './apply-channel-page.ts';
import { postEntry } from './channel-entries.ts';
import { type ChannelEntry, type NonPostRow, toChannelEntry } from './channel-entry.ts';
import {
  type ChannelRef,
  pageSize,
  type ReadChannelPage,
  readChannelPage,
  readPageAfter,
  resolveDescriptor,
} from './channel-page.ts';
import { rewindChannel } from './rewind-channel.ts';

/**
 * Catches a channel up: first with the latest page, later from the position on, up to the budget.
 * Yields what happened.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; applied pages stay
 */
export async function* readChannel(
  core: AccountCore,
  channelId: string,
  { signal, budget }: { readonly signal: AbortSignal; readonly budget: ReadBudget },
): AsyncGenerator<readonly ChannelAccountEvent[]> {
  let wentBack = false;
  const known = await core.store.read((tx) => requireChannel(tx, channelId));
  // The owner of a closed channel closes it again.
  if (shouldReadChannel(known) || known.descriptor.creator === core.account) {
    const restoredAt = await restoredAtOf(core, known.relay_id, signal);
    if (restoredAt !== (known.restored?.at ?? 0)) {
      const { noticeRestoredHost } = await core.later();
      yield await noticeRestoredHost(core, known, { restoredAt, signal });
    }
  }
  for (;;) {
    signal.throwIfAborted();
    const row = await core.store.read((tx) => requireChannel(tx, channelId));
    if (!shouldReadChannel(row)) return;
    const direction = row.span === undefined ? 'latest' : 'newer';
    let page = await readPageInDirection(core, row, { direction, signal }).catch(rollbackOf);
    if (page instanceof RelayMisbehaviour) {
      if (wentBack || !(await core.store.write((tx) => goBack(tx, row)))) throw page;
      wentBack = true;
      if (!row.rollback) yield [{ kind: 'channel-rollback', channelId }];
      continue;
    }
    budget.spendPage(page.sequences.length);
    const { revision } = row.descriptor;
    if (row.span && page.events.some((event) => event.descriptorRevision < revision)) {
      page = await (await core.later()).withoutLostRights(core, row, page);
    }
    const read = { read: row, page, direction } as const;
    const step = await core.store.write((tx) => commitPage(core, tx, read));
    if (step !== undefined) {
      yield step.events;
      // The latest page is the end of the timeline.
      if (direction === 'latest' || !page.hasMore || !shouldReadChannel(step.row)) return;
    }
    if (budget.isSpent) {
      const event = { kind: 'channel-incomplete', channelId } as const;
      await markInterrupted(core, channels, { id: channelId, event });
      return yield [event];
    }
  }
}

/** Rewinds the channel of a host that went back. @returns whether there is something to read again */
async function goBack(tx: StoreWriter, row: ChannelRow): Promise<boolean> {
  if (!(await rewindChannel(tx, row))) return false;
  const events = [{ kind: 'channel-rollback', channelId: row.channel_id }] as const;
  await recordEvents(tx, row.rollback ? [] : events);
  return true;
}

/** Returns the error of a host that lost events; throws every other one. */
function rollbackOf(error: unknown): RelayMisbehaviour {
  if (error instanceof RelayMisbehaviour && error.reason === 'channel_rollback') return error;
  throw error;
}

/** Catches a channel up, up to the read budget; its events are buffered. */
export async function readChannelBuffered(
  core: AccountCore,
  channelId: string,
  signal: AbortSignal,
): Promise<void> {
  const budget = new ReadBudget(core.reading);
  await runToEnd(core, readChannel(core, channelId, { signal, budget }));
}

/**
 * Reads one page before the stored part of the timeline.
 * @returns whether there is more before it
 */
export async function readOlderPage(
  core: AccountCore,
  channelId: string,
  signal: AbortSignal,
): Promise<boolean> {
  for (;;) {
    signal.throwIfAborted();
    const row = await core.store.read((tx) => requireChannel(tx, channelId));
    if (row.span === undefined) {
      await readChannelBuffered(core, channelId, signal);
      const read = await core.store.read((tx) => requireChannel(tx, channelId));
      return (read.span?.first ?? 0) > 0;
    }
    if (row.span.first === 0) return false;
    const direction = 'older';
    const page = await readPageInDirection(core, row, { direction, signal });
    const step = await core.store.write((tx) =>
      commitPage(core, tx, { read: row, page, direction }),
    );
    if (step !== undefined) return (step.row.span?.first ?? 0) > 0;
  }
}

async function readPageInDirection(
  core: AccountCore,
  row: ChannelRow,
  { direction, signal }: { readonly direction: Direction; readonly signal: AbortSignal },
): Promise<ReadChannelPage> {
  const { first = 0, position = -1 } = row.span ?? {};
  if (direction === 'newer' && position >= 0) {
    return await readPageAfter(core, row, { after: position, signal });
  }
  const bounds: Record<Direction, ChannelRange> = {
    latest: {},
    newer: { after: position },
    older: { before: first },
  };
  const range = { ...bounds[direction], limit: pageSize };
  return await readChannelPage(core, row, { range, signal });
}

/** Applies a page; does nothing if another reader of this store has moved the position. */
async function commitPage(
  core: AccountCore,
  tx: StoreWriter,
  {
    read,
    page,
    direction,
  }: { readonly read: ChannelRow; readonly page: ReadChannelPage; readonly direction: Direction },
): Promise<AppliedChannelPage | undefined> {
  const row = await channelRow(tx, read.channel_id);
  const isSame =
    row?.standing === read.standing &&
    row.span?.first === read.span?.first &&
    row.span?.position === read.span?.position;
  if (!isSame) return undefined;
  const { leftAt, ...rest } = row;
  // An older page does not resume the interrupted read after the position.
  const next = direction === 'older' ? row : rest;
  const applied = await applyChannelPage(core, tx, {
    row: next,
    page,
    direction,
    covers: read.hinted_head,
  });
  // Nothing of an earlier time is new.
  if (direction !== 'older') await recordEvents(tx, applied.events);
  return applied;
}

/** One page of a timeline that is not stored. */
export interface ChannelPreview {
  /** The verified current descriptor. */
  readonly descriptor: ChannelDescriptor;
  /**
   * Oldest first. Later edits and deletions are missing, because they were not read: only a
   * followed channel is complete.
   */
  readonly entries: readonly ChannelEntry[];
  /** Whether more is left in the direction of reading. */
  readonly hasMore: boolean;
}

/** Reads and verifies one page of any channel, at any position, and stores nothing of it. */
export async function previewChannel(
  core: AccountCore,
  channel: ChannelRef,
  { range, signal }: { readonly range: ChannelRange; readonly signal: AbortSignal },
): Promise<ChannelPreview> {
  const { channel_id } = channel;
  const descriptor = await currentDescriptor(core, channel, signal);
  const page = await readChannelPage(core, channel, {
    range: { limit: pageSize, ...range },
    signal,
  });
  const { posts } = projectChannel(emptyProjection, page.events);
  const rows: NonPostRow[] = [];
  for (const event of page.events) {
    const { sequence, acceptedAt: accepted_at, account: by } = event;
    const facts = { channel_id, sequence, accepted_at, by };
    if (event.kind === 'descriptor') {
      rows.push({ ...facts, kind: 'change', descriptor: event.payload });
    } else if (event.kind === 'delete') {
      const { target_sequence, reason } = event.payload;
      const said = reason === undefined ? {} : { reason };
      rows.push({ ...facts, kind: 'deletion', target_sequence, ...said });
    }
  }
  for (const { sequence, reason } of page.refused) {
    rows.push({ kind: 'refused', channel_id, sequence, reason });
  }
  rows.push(...gapsOf(channel_id, { page, ...boundsOf(page, range) }));
  const entries: ChannelEntry[] = [
    ...[...posts.values()].map((post) => postEntry(channel_id, post)),
    ...rows.map((row) => toChannelEntry(row)),
  ];
  entries.sort((a, b) => a.sequence - b.sequence);
  return { descriptor, entries, hasMore: page.hasMore };
}

/** Returns the sequences between which a page has everything readable. */
function boundsOf({ sequences, hasMore }: ReadChannelPage, { before, after }: ChannelRange) {
  const [first = 0, last = -1] = [sequences[0], sequences.at(-1)];
  if (after !== undefined)
    return { floor: after, ceiling: sequences.length > 0 ? last + 1 : after };
  const ceiling = sequences.length > 0 || before === undefined ? last + 1 : before;
  return { floor: hasMore ? first - 1 : -1, ceiling };
}

/**
 * Resolves the current descriptor from the host, and adopts it if the channel is known here.
 *
 * @throws RelayMisbehaviour `channel_rollback` for a revision below the one known before,
 *   `channel_conflict` for a different descriptor of the same revision
 */
export async function currentDescriptor(
  core: AccountCore,
  channel: ChannelRef,
  signal: AbortSignal,
): Promise<ChannelDescriptor> {
  const find = () => core.store.read((tx) => channelRow(tx, channel.channel_id));
  const before = (await find())?.descriptor;
  const found = await resolveDescriptor(core, channel, { signal });
  if (before !== undefined) checkNoRollback(before, found);
  return await core.store.write(async (tx) => {
    const row = await channelRow(tx, channel.channel_id);
    if (row === undefined || row.standing === 'creating') return found;
    const adopted = await adoptDescriptor(tx, row, found);
    if (adopted !== row && row.standing === 'followed') {
      const { channel_id, descriptor } = adopted;
      await recordEvents(tx, [{ kind: 'channel-changed', channelId: channel_id, descriptor }]);
    }
    return adopted.descriptor;
  });
}

function checkNoRollback(known: ChannelDescriptor, found: ChannelDescriptor): void {
  const method = 'channel.resolve';
  if (found.revision < known.revision) {
    throw new RelayMisbehaviour(
      'channel_rollback',
      `revision ${found.revision} after ${known.revision}`,
      { method },
    );
  }
  if (found.revision === known.revision && !isSameDescriptor(found, known)) {
    throw new RelayMisbehaviour(
      'channel_conflict',
      `revision ${found.revision} has a different descriptor already`,
      { method },
    );
  }
  if (known.status === 'closed' && found.revision > known.revision) {
    throw new RelayMisbehaviour('channel_conflict', 'a closed channel has another revision', {
      method,
    });
  }
}
