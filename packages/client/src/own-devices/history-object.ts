/** The object with stored messages that one own device hands to another (decision 0039). */
import type { Static } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { AccountId, Counter, DeviceId, GroupId, MessageId, Type, UnixSeconds } from '../taken.ts';

/** Messages in one object at most. */
export const mostMessages = 200;
/** Bytes of messages in one object; an envelope has room for some 196,000 (04 §3). */
export const mostBytes = 150_000;
/** Bytes of the largest message that fits: the envelope's limit, less what is around it. */
export const mostMessageBytes = 194_000;

const Content = Type.Unsafe<JsonObject>(Type.Object({ $type: Type.String() }));

const DirectMessageCopy = Type.Object({
  message_id: MessageId,
  from: AccountId,
  from_device_id: DeviceId,
  to: AccountId,
  created_at: UnixSeconds,
  accepted_at: UnixSeconds,
  /** Of the complete envelope, by which a relay's copy is recognized. */
  digest: Type.String({ minLength: 1, maxLength: 100 }),
  content: Content,
});
export type DirectMessageCopy = Static<typeof DirectMessageCopy>;

const GroupMessageCopy = Type.Object({
  group_id: GroupId,
  sequence: Counter,
  epoch: Counter,
  message_id: MessageId,
  from: AccountId,
  from_device_id: DeviceId,
  created_at: UnixSeconds,
  accepted_at: UnixSeconds,
  content: Content,
});
export type GroupMessageCopy = Static<typeof GroupMessageCopy>;

/** One of the objects of a hand-over, newest messages first. */
export const History = Type.Object({
  messages: Type.Optional(Type.Array(DirectMessageCopy, { maxItems: mostMessages })),
  group_messages: Type.Optional(Type.Array(GroupMessageCopy, { maxItems: mostMessages })),
  /** Messages handed over so far, with these, and how many there are at most. */
  sent: Counter,
  total: Counter,
  complete: Type.Boolean(),
});
export type History = Static<typeof History>;
