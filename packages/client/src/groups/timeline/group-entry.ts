/** Entries of a group's timeline: as they are stored, with the wire's member names, and in public. */
import type { GroupMessageEnvelope, GroupRole } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { type MessageContent, messageContent } from '../../conversations/message-content.ts';

interface RowPosition {
  readonly group_id: string;
  readonly sequence: number;
  readonly epoch: number;
  readonly accepted_at: number;
}

/** A stored message; the members are those of {@link GroupMessage}. */
export interface GroupMessageRow extends RowPosition {
  readonly kind: 'message';
  readonly message_id: string;
  readonly from: string;
  readonly from_device_id: string;
  readonly created_at: number;
  readonly outcome: GroupMessage['outcome'];
  readonly content?: JsonObject;
  readonly reason?: string;
  readonly handedOverBy?: string;
  readonly envelope?: GroupMessageEnvelope;
}

/** What changes of the stored and of the public form have in common. */
interface ChangeFacts {
  /** The event's type without the service word, such as `group.update`. */
  readonly type: string;
  /** Account that signed; absent for rotations made by the relay. */
  readonly by?: string;
  /** The event's signature, by which its author recognizes it. */
  readonly signature?: string;
  readonly joined?: readonly string[];
  readonly left?: readonly string[];
  readonly banned?: readonly string[];
  readonly unbanned?: readonly string[];
  /** Accounts with a new member key. */
  readonly rekeyed?: readonly string[];
  readonly roles?: readonly { readonly account: string; readonly role: GroupRole }[];
  /** Changed properties, as in the protocol's event. */
  readonly properties?: JsonObject;
}

/** A stored management event. */
export interface GroupChangeRow extends RowPosition, ChangeFacts {
  readonly kind: 'change';
}

/** A stored event that was rejected. */
interface GroupRejectedRow extends RowPosition {
  readonly kind: 'rejected';
  readonly reason: string;
}

export type GroupEntryRow = GroupMessageRow | GroupChangeRow | GroupRejectedRow;

interface EntryPosition {
  readonly groupId: string;
  readonly sequence: number;
  readonly epoch: number;
  /** Unix seconds as the host claims; never used for order. */
  readonly acceptedAt: number;
}

/**
 * A member's message with a verified envelope. Body, attachments and `replyTo` are those of an
 * applied message.
 */
export interface GroupMessage extends EntryPosition, MessageContent {
  readonly kind: 'message';
  readonly messageId: string;
  /** Account and device of the verified certificate. */
  readonly from: string;
  readonly fromDeviceId: string;
  /** Unix seconds, as the sender claims. */
  readonly createdAt: number;
  /**
   * - `applied`: it took effect, or is a message to show;
   * - `stored`: of an unknown type, stored without any effect;
   * - `pending`: the secret of its epoch is not stored here yet;
   * - `rejected`: it does not decrypt, or its content breaks the rules.
   */
  readonly outcome: 'applied' | 'stored' | 'pending' | 'rejected';
  /** The business object, decrypted. */
  readonly content?: JsonObject;
  /** The broken rule, if it was rejected. */
  readonly reason?: string;
  /** ID of the own device that handed it over: its signature was not verified here. */
  readonly handedOverBy?: string;
  /** The protocol's object, while it cannot be decrypted. */
  readonly envelope?: GroupMessageEnvelope;
  /** Sequence of the message that this one answers. */
  readonly replyTo?: number;
}

/** A verified and applied management event. */
export interface GroupChange extends EntryPosition, ChangeFacts {
  readonly kind: 'change';
}

/** A message event that no member can have sent; reading continued (05 §14.2). */
export interface GroupRejection extends EntryPosition {
  readonly kind: 'rejected';
  readonly reason: string;
}

/** One entry of a group's timeline. */
export type GroupEntry = GroupMessage | GroupChange | GroupRejection;

/** Whether an entry is a message of a member, decrypted. */
export function isGroupMessage(entry: GroupEntryRow): entry is GroupMessageRow {
  if (entry.kind !== 'message' || entry.outcome !== 'applied') return false;
  return String(entry.content?.$type).endsWith('.group.message.content');
}

/** Converts a stored row to its public form. */
export function toGroupEntry(row: GroupMessageRow): GroupMessage;
export function toGroupEntry(row: GroupChangeRow): GroupChange;
export function toGroupEntry(row: GroupEntryRow): GroupEntry;
export function toGroupEntry(row: GroupEntryRow): GroupEntry {
  const { group_id: groupId, accepted_at: acceptedAt, ...rest } = row;
  if (rest.kind !== 'message') return { ...rest, groupId, acceptedAt };
  const { message_id: messageId, from_device_id: fromDeviceId, created_at, ...facts } = rest;
  const message = { ...facts, groupId, acceptedAt, messageId, fromDeviceId, createdAt: created_at };
  if (!isGroupMessage(row)) return message;
  const { reply_to_seq: replyTo, ...content } = row.content as MessageContent & {
    readonly reply_to_seq?: number;
  };
  return { ...message, ...messageContent(content), ...(replyTo !== undefined && { replyTo }) };
}
