/** Entries of a channel's timeline: as they are stored, with the wire's member names, and in public. */
import {
  type ChannelDescriptor,
  type ChannelPost,
  type PostState,
  postState,
} from '@posthouse/protocol';
import { type MessageContent, messageContent } from '../../conversations/message-content.ts';

interface RowPosition {
  readonly channel_id: string;
  readonly sequence: number;
  readonly accepted_at: number;
}

/** A stored post: the signed object, and its edited state. */
export interface ChannelPostRow extends RowPosition {
  readonly kind: 'post';
  readonly from: string;
  readonly post: ChannelPost;
  /** Only if it was edited. */
  readonly state?: PostState;
  readonly edited?: {
    readonly sequence: number;
    readonly accepted_at: number;
    readonly by: string;
  };
}

export interface ChannelChangeRow extends RowPosition {
  readonly kind: 'change';
  readonly by: string;
  readonly descriptor: ChannelDescriptor;
}

interface ChannelDeletionRow extends RowPosition {
  readonly kind: 'deletion';
  readonly by: string;
  readonly target_sequence: number;
  readonly reason?: string;
}

type ChannelRefusedRow = Omit<RowPosition, 'accepted_at'> & {
  readonly kind: 'refused';
  readonly reason: string;
};

/** Stored missing events; the members are those of {@link ChannelGapEntry}. */
export type ChannelGapRow = Omit<RowPosition, 'accepted_at'> & {
  readonly kind: 'gap';
  readonly through: number;
};

/** A stored entry that is no post. */
export type NonPostRow = ChannelChangeRow | ChannelDeletionRow | ChannelRefusedRow | ChannelGapRow;

export type ChannelEntryRow = ChannelPostRow | NonPostRow;

interface EntryPosition {
  readonly channelId: string;
  readonly sequence: number;
  /** Unix seconds as the host claims; never used for order. */
  readonly acceptedAt: number;
}

/** A post in its latest edited state. */
export interface ChannelPostEntry extends EntryPosition, MessageContent {
  readonly kind: 'post';
  readonly messageId: string;
  /** Account of the verified certificate. */
  readonly from: string;
  /**
   * The post without its signature: body, attachments and other members; `postReferences` of
   * `@posthouse/protocol/markdown` resolves its targets.
   */
  readonly content: PostState;
  /** The last edit that took effect, by the owner or a moderator. */
  readonly edited?: {
    readonly sequence: number;
    /** Unix seconds as the host claims. */
    readonly acceptedAt: number;
    readonly by: string;
  };
}

/** A revision of the descriptor: creation, update or closure. */
export interface ChannelChangeEntry extends EntryPosition {
  readonly kind: 'change';
  readonly by: string;
  readonly descriptor: ChannelDescriptor;
}

/** The deletion of a post, which may never have been stored here. */
export interface ChannelDeletionEntry extends EntryPosition {
  readonly kind: 'deletion';
  readonly by: string;
  readonly targetSequence: number;
  readonly reason?: string;
}

/** An event that does not verify and is not used; reading continued. */
export interface ChannelRefusedEntry {
  readonly kind: 'refused';
  readonly channelId: string;
  readonly sequence: number;
  readonly reason: string;
}

/**
 * A range with missing events: never assigned, deleted, cleaned up, or withheld. The gap proves
 * none of these (06 §8.11).
 */
export interface ChannelGapEntry {
  readonly kind: 'gap';
  readonly channelId: string;
  /** First missing sequence. */
  readonly sequence: number;
  /** Last missing sequence. */
  readonly through: number;
}

/** One entry of a channel's timeline. */
export type ChannelEntry =
  | ChannelPostEntry
  | ChannelChangeEntry
  | ChannelDeletionEntry
  | ChannelRefusedEntry
  | ChannelGapEntry;

/** Converts a stored row to its public form. */
export function toChannelEntry(row: ChannelPostRow): ChannelPostEntry;
export function toChannelEntry(row: ChannelEntryRow): ChannelEntry;
export function toChannelEntry(row: ChannelEntryRow): ChannelEntry {
  const { channel_id: channelId, ...placed } = row;
  if (placed.kind === 'refused' || placed.kind === 'gap') return { ...placed, channelId };
  const { accepted_at: acceptedAt, ...rest } = placed;
  if (rest.kind === 'change') return { ...rest, channelId, acceptedAt };
  if (rest.kind === 'deletion') {
    const { target_sequence: targetSequence, ...facts } = rest;
    return { ...facts, channelId, acceptedAt, targetSequence };
  }
  const { post, state: content = postState(post), edited, ...facts } = rest;
  return {
    ...{ ...facts, channelId, acceptedAt, messageId: post.message_id, content },
    ...messageContent(content),
    ...(edited && {
      edited: { sequence: edited.sequence, acceptedAt: edited.accepted_at, by: edited.by },
    }),
  };
}
