/** The public form of a message; stored rows keep the wire's member names. */
import type { DirectMessage, RelayError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { type MessageContent, messageContent } from '../conversations/message-content.ts';
import type { MessageRow, RecordOutcome, SendingStatus } from './message-rows.ts';

/** Identifies a message: IDs are chosen by senders, so only both together are unique. */
export interface MessageKey {
  readonly from: string;
  readonly messageId: string;
}

/**
 * A direct message, sent or received, as this device stores it. Body, attachments and `replyTo` are
 * those of an accepted message; objects of unknown types have only `content`.
 */
export interface Message extends MessageContent {
  readonly messageId: string;
  readonly from: string;
  readonly fromDeviceId: string;
  readonly to: string;
  /** Unix seconds, as the sender wrote them. */
  readonly createdAt: number;
  /** Digest of the complete envelope (04 §18.2); empty while there is none. */
  readonly digest: string;
  /** The message that this one answers. */
  readonly replyTo?: MessageKey;
  /** The business object, a wire object; absent if it could not be decrypted. */
  readonly content?: JsonObject;
  readonly outcome: RecordOutcome;
  /** Why the message was refused. */
  readonly reason?: string;
  /** Position in this device's own order of arrival. */
  readonly order: number;
  /** Unix seconds at which the relay that holds the record accepted it. */
  readonly acceptedAt?: number;
  /**
   * ID of the own device that handed the message over. This device did not verify the sender's
   * signature and trusts that device, until it reads the message from a relay itself.
   */
  readonly handedOverBy?: string;
  /** For messages this device sent. */
  readonly status?: SendingStatus;
  readonly error?: Pick<RelayError, 'code' | 'message'>;
}

/** Converts a stored row to its public form. */
export function toMessage(row: MessageRow): Message {
  const { message_id, from_device_id, created_at, accepted_at, queued: _key, ...rest } = row;
  return {
    ...rest,
    messageId: message_id,
    fromDeviceId: from_device_id,
    createdAt: created_at,
    ...(accepted_at !== undefined && { acceptedAt: accepted_at }),
    ...contentOf(row),
  };
}

/** Content of a known type was checked when it was sent or read; of others, anything may be in it. */
function contentOf({ outcome, content }: MessageRow): Pick<Message, 'replyTo'> & MessageContent {
  if (outcome !== 'applied' || !String(content?.$type).endsWith('.message.direct')) return {};
  const message = content as unknown as DirectMessage;
  const { reply_to: answered } = message;
  return {
    ...messageContent(message),
    ...(answered && { replyTo: { from: answered.from, messageId: answered.message_id } }),
  };
}
