/** Applies one verified page to the stored channel, in one transaction. */
import {
  type ChannelProjection,
  emptyProjection,
  type ProjectedPost,
  projectChannel,
  type VerifiedChannelEvent,
} from '@posthouse/protocol';
import { openConversation } from '../../conversations/conversation-rows.ts';
import type { AccountCore } from '../../core.ts';
import type { ChannelAccountEvent } from '../../events.ts';
import type { StoreWriter } from '../../store/index.ts';
import {
  adoptDescriptor,
  type ChannelRow,
  type ChannelSpan,
  putChannel,
  putDescriptors,
} from '../channel-rows.ts';
import {
  isDeleted,
  markDeleted,
  postEntry,
  projectedPost,
  putChannelEntry,
  putPost,
  putWaitingEdit,
  removeEntriesAfter,
  removeEntry,
  removeWaitingEdits,
  type WaitingEdit,
} from './channel-entries.ts';
import type { ChannelGapRow } from './channel-entry.ts';
import type { ReadChannelPage } from './channel-page.ts';

/** Direction in which a page continues the stored part of the timeline. */
export type Direction = 'latest' | 'newer' | 'older';

/** A page with its bounds: it has every readable event between `floor` and `ceiling`. */
interface BoundedPage {
  readonly page: ReadChannelPage;
  readonly direction: Direction;
  /** Exclusive lower bound. */
  readonly floor: number;
  /** Exclusive upper bound. */
  readonly ceiling: number;
}

export interface AppliedChannelPage {
  readonly row: ChannelRow;
  readonly events: readonly ChannelAccountEvent[];
}

/**
 * Applies a page to the row it was read for: updates posts, removes deleted ones, stores
 * descriptors and gaps, and moves the span (06 §10.1, §10.2).
 */
export async function applyChannelPage(
  core: AccountCore,
  tx: StoreWriter,
  {
    row,
    page,
    direction,
    covers = -1,
  }: {
    readonly row: ChannelRow;
    readonly page: ReadChannelPage;
    readonly direction: Direction;
    /** The highest head named by hints before the page was requested. */
    readonly covers?: number | undefined;
  },
): Promise<AppliedChannelPage> {
  const bounded = withBounds(row, page, direction);
  const span = spanAfter(row.span, bounded);
  await putDescriptors(tx, page.descriptors);
  await openConversation(core, tx, { kind: 'channel', id: row.channel_id });
  const { before, waiting } = await projectionBefore(tx, row, bounded);
  const after = projectChannel(before, [...page.events, ...waiting]);
  const counted = effectiveEvents(page);
  const events: ChannelAccountEvent[] = [];
  let next = row;
  for (const event of counted) {
    const step = await applyEvent(core, tx, { row: next, span, event, before, after });
    next = step.row;
    events.push(...step.events);
  }
  events.push(...(await storeRefusedAndGaps(tx, row, bounded)));
  const closing = counted.find(isClosing);
  if (closing !== undefined && direction === 'older') {
    // Events that the host returned after the closing descriptor are not part of it (06 §7.4).
    while (await removeEntriesAfter(tx, row.channel_id, closing.sequence));
  }
  const { hinted_head = -1, rollback, ...rest } = next;
  const isRead = direction === 'latest' || (direction === 'newer' && !page.hasMore);
  const isOpen = hinted_head > (isRead ? Math.max(covers, span.position) : span.position);
  const applied: ChannelRow = {
    ...rest,
    span,
    ...(closing !== undefined && { closed_at: closing.sequence }),
    ...(isOpen && { hinted_head }),
    ...(rollback && events.length === 0 && { rollback }),
  };
  await putChannel(tx, applied);
  return { row: applied, events };
}

function withBounds(
  { span }: ChannelRow,
  page: ReadChannelPage,
  direction: Direction,
): BoundedPage {
  const [lowest = 0] = page.sequences;
  const floor = page.hasMore ? lowest - 1 : -1;
  if (direction === 'latest') {
    return { page, direction, floor, ceiling: (page.sequences.at(-1) ?? -1) + 1 };
  }
  const { first, position } = span as ChannelSpan;
  if (direction === 'older') return { page, direction, floor, ceiling: first };
  return { page, direction, floor: position, ceiling: (page.sequences.at(-1) ?? position) + 1 };
}

function spanAfter(span: ChannelSpan | undefined, { direction, floor, ceiling }: BoundedPage) {
  const { first = floor + 1, position = -1 } = span ?? {};
  if (direction === 'older') return { first: floor + 1, position };
  return { first, position: Math.max(position, ceiling - 1) };
}

/** Reads what a page's events change: stored posts, and edits that wait for its posts. */
async function projectionBefore(
  tx: StoreWriter,
  row: ChannelRow,
  { page, direction, floor }: BoundedPage,
): Promise<{ readonly before: ChannelProjection; readonly waiting: VerifiedChannelEvent[] }> {
  const posts = new Map<number, ProjectedPost>();
  const waiting: VerifiedChannelEvent[] = [];
  if (direction === 'older') {
    for (const { kind, sequence } of page.events) {
      if (kind !== 'post') continue;
      const edits = await removeWaitingEdits(tx, row.channel_id, sequence);
      // Edits after the closing descriptor do not count, on whichever page it was (06 §7.4).
      const counted = edits.filter(
        (edit) => edit.sequence < (row.closed_at ?? Number.POSITIVE_INFINITY),
      );
      waiting.push(...counted.map((edit) => verifiedEdit(edit)));
    }
    waiting.sort((a, b) => a.sequence - b.sequence);
  } else {
    for (const event of page.events) {
      if (event.kind !== 'edit' && event.kind !== 'delete') continue;
      const { target_sequence: target } = event.payload;
      const post = await projectedPost(tx, row.channel_id, target);
      if (post !== undefined) posts.set(target, post);
    }
  }
  // Without the stored descriptor: it may be newer than the page, and closed.
  return { before: { ...emptyProjection, position: floor, posts }, waiting };
}

/** Returns a waiting edit, whose signature and permission were verified with its own page. */
function verifiedEdit(waiting: WaitingEdit): VerifiedChannelEvent {
  const { sequence, accepted_at: acceptedAt, account, edit: payload, revision } = waiting;
  return { sequence, acceptedAt, account, descriptorRevision: revision, kind: 'edit', payload };
}

/** Returns the events up to the closing descriptor (06 §7.4). */
function effectiveEvents({ events }: ReadChannelPage): VerifiedChannelEvent[] {
  const closing = events.find(isClosing);
  if (closing === undefined) return [...events];
  return events.filter(({ sequence }) => sequence <= closing.sequence);
}

function isClosing(event: VerifiedChannelEvent): boolean {
  return event.kind === 'descriptor' && event.payload.status === 'closed';
}

interface EventEffect {
  readonly row: ChannelRow;
  readonly events: readonly ChannelAccountEvent[];
}

async function applyEvent(
  core: AccountCore,
  tx: StoreWriter,
  {
    row,
    span,
    event,
    before,
    after,
  }: {
    readonly row: ChannelRow;
    readonly span: ChannelSpan;
    readonly event: VerifiedChannelEvent;
    readonly before: ChannelProjection;
    readonly after: ChannelProjection;
  },
): Promise<EventEffect> {
  const { channel_id } = row;
  const { sequence, acceptedAt: accepted_at, account } = event;
  const entry = { channel_id, sequence, accepted_at, by: account };
  switch (event.kind) {
    case 'descriptor': {
      const descriptor = event.payload;
      await putChannelEntry(tx, { ...entry, kind: 'change', descriptor });
      const adopted = await adoptDescriptor(tx, row, descriptor);
      const isNews = adopted !== row;
      return {
        row: adopted,
        events: isNews ? [{ kind: 'channel-changed', channelId: channel_id, descriptor }] : [],
      };
    }
    case 'post': {
      const post = after.posts.get(sequence);
      if (post === undefined) return { row, events: [] };
      const { message_id: messageId } = post.post;
      if (await isDeleted(tx, channel_id, { sequence, messageId })) return { row, events: [] };
      const known = await projectedPost(tx, channel_id, sequence);
      // Read again after the host went back: its later edits are read again too.
      if (known?.post.message_id === messageId) return { row, events: [] };
      await putPost(core, tx, { channelId: channel_id, post });
      return {
        row,
        events: [
          { kind: 'channel-post', channelId: channel_id, post: postEntry(channel_id, post) },
        ],
      };
    }
    case 'edit': {
      const target = event.payload.target_sequence;
      const post = after.posts.get(target);
      if (target < span.first) {
        const { payload: edit, descriptorRevision: revision } = event;
        const waiting = { sequence, accepted_at, account, revision, edit };
        await putWaitingEdit(tx, channel_id, waiting);
      }
      // A post of this page is written with all its edits already.
      if (post?.edited?.sequence !== sequence || !before.posts.has(target))
        return { row, events: [] };
      await putPost(core, tx, { channelId: channel_id, post });
      if (before.posts.get(target)?.edited?.sequence === sequence) return { row, events: [] };
      return {
        row,
        events: [
          { kind: 'channel-edited', channelId: channel_id, post: postEntry(channel_id, post) },
        ],
      };
    }
    case 'delete':
      return { row, events: await applyDeletion(tx, { channel_id, span, event }) };
    case 'unknown':
      return { row, events: [] };
  }
}

/** Removes the post with its edits, and stores the deletion of a post not read yet (06 §7.3). */
async function applyDeletion(
  tx: StoreWriter,
  {
    channel_id,
    span,
    event,
  }: {
    readonly channel_id: string;
    readonly span: ChannelSpan;
    readonly event: VerifiedChannelEvent & { readonly kind: 'delete' };
  },
): Promise<ChannelAccountEvent[]> {
  const { sequence, acceptedAt: accepted_at, account: by, payload } = event;
  const { target_sequence, reason } = payload;
  // A deletion of a later sequence is invalid and has no effect.
  if (target_sequence >= sequence) return [];
  const stored = await projectedPost(tx, channel_id, target_sequence);
  if (stored !== undefined) await removeEntry(tx, channel_id, target_sequence);
  await removeWaitingEdits(tx, channel_id, target_sequence);
  if (stored !== undefined || target_sequence < span.first) {
    const messageId = stored?.post.message_id;
    await markDeleted(tx, channel_id, { sequence: target_sequence, messageId });
  }
  const said = { ...(reason !== undefined && { reason }) };
  const entry = { channel_id, sequence, accepted_at, by, target_sequence, ...said };
  if (!(await putChannelEntry(tx, { kind: 'deletion', ...entry }))) return [];
  return [
    { kind: 'channel-deleted', channelId: channel_id, sequence: target_sequence, by, ...said },
  ];
}

/** Stores events that do not verify, and gaps. */
async function storeRefusedAndGaps(
  tx: StoreWriter,
  { channel_id }: ChannelRow,
  bounded: BoundedPage,
): Promise<ChannelAccountEvent[]> {
  const events: ChannelAccountEvent[] = [];
  for (const { sequence, reason } of bounded.page.refused) {
    const entry = { kind: 'refused', channel_id, sequence, reason } as const;
    if (!(await putChannelEntry(tx, entry))) continue;
    events.push({ kind: 'channel-event-refused', channelId: channel_id, sequence, reason });
  }
  for (const gap of gapsOf(channel_id, bounded)) {
    if (!(await putChannelEntry(tx, gap))) continue;
    events.push({
      kind: 'channel-gap',
      channelId: channel_id,
      from: gap.sequence,
      through: gap.through,
    });
  }
  return events;
}

/** Lists the gaps between the bounds of a page. */
export function gapsOf(
  channel_id: string,
  { page, floor, ceiling }: Pick<BoundedPage, 'page' | 'floor' | 'ceiling'>,
): ChannelGapRow[] {
  const gaps: ChannelGapRow[] = [];
  let last = floor;
  for (const sequence of [...page.sequences, ceiling]) {
    if (sequence > last + 1) {
      gaps.push({ kind: 'gap', channel_id, sequence: last + 1, through: sequence - 1 });
    }
    last = sequence;
  }
  return gaps;
}
