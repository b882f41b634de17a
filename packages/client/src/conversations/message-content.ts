/** What messages, group messages and posts have in common. */
import type { ContentReference, MessageBody } from '@posthouse/protocol';

/** What a message says. Both members are the protocol's objects, as `readBody` and downloads need. */
export interface MessageContent {
  /** Text with its media type. */
  readonly body?: MessageBody;
  readonly attachments?: readonly ContentReference[];
}

/** Picks body and attachments of content that was checked. */
export function messageContent({ body, attachments }: MessageContent): MessageContent {
  return { ...(body !== undefined && { body }), ...(attachments !== undefined && { attachments }) };
}
