/** The object with followed channels and read marks (decision 0039). */
import type { Static } from '@posthouse/protocol';
import {
  AccountId,
  ChannelId,
  Counter,
  GroupId,
  MessageId,
  RelayId,
  Type,
  UnixSeconds,
} from '../taken.ts';

/** Channels, and read marks, in one object; an envelope has room for more. */
export const batchSize = 500;
/** Followed channels that a device sends, and takes from others. */
export const channelLimit = 1_000;

const SharedChannel = Type.Object({
  channel_id: ChannelId,
  relay_id: RelayId,
  followed: Type.Boolean(),
  /** Unix milliseconds; 0 if it is not known. */
  changed_at: Counter,
});
export type SharedChannel = Static<typeof SharedChannel>;

/** Positions in conversations with people differ by device, so the mark is a message. */
const PersonMark = Type.Object({
  kind: Type.Literal('person'),
  id: AccountId,
  from: AccountId,
  message_id: MessageId,
  /** Unix seconds, as the relay has them for every device. */
  accepted_at: UnixSeconds,
});
const GroupMark = Type.Object({ kind: Type.Literal('group'), id: GroupId, through: Counter });
const ChannelMark = Type.Object({ kind: Type.Literal('channel'), id: ChannelId, through: Counter });
const ReadMark = Type.Union([PersonMark, GroupMark, ChannelMark]);
export type ReadMark = Static<typeof ReadMark>;

/** What one device of an account tells the others. Its signature is the envelope's. */
export const AccountState = Type.Object({
  channels: Type.Optional(Type.Array(SharedChannel, { maxItems: batchSize })),
  read: Type.Optional(Type.Array(ReadMark, { maxItems: batchSize })),
});
export type AccountState = Static<typeof AccountState>;
