/** The messages people write to each other (04 §7.3). */
import { badRequest } from '../errors.ts';
import { checkAccountId, type Network } from '../identity/index.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  checkPart,
  MessageId,
  memberPath,
  type Static,
  Type,
  TypeName,
} from '../schema.ts';
import { checkMessageBody, MessageBody } from './body.ts';
import { ContentReference, checkAttachments } from './content-reference.ts';

/** Another message, found by its sender and ID. */
export const DirectMessageReference = Type.Object({ from: AccountId, message_id: MessageId });
export type DirectMessageReference = Static<typeof DirectMessageReference>;

/** A message of this network's type `message.direct`; sender and target are the envelope's. */
export const DirectMessage = Type.Object({
  $type: TypeName,
  body: Type.Optional(MessageBody),
  attachments: Type.Optional(Type.Array(ContentReference)),
  reply_to: Type.Optional(DirectMessageReference),
});
export type DirectMessage = Static<typeof DirectMessage>;

/**
 * Checks a direct message: a body or attachments, each sound, no attachment twice.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkDirectMessage(network, value);
 * console.log(value.body?.text);
 */
export function checkDirectMessage(
  network: Network,
  value: unknown,
  path = '',
): asserts value is DirectMessage {
  checkObject(network, { type: 'message.direct', schema: DirectMessage }, value, path);
  checkNoNull(value, path);
  const { body, attachments = [], reply_to: replyTo } = value;
  if (body === undefined && attachments.length === 0) {
    throw badRequest(path, 'neither body nor attachments');
  }
  if (body !== undefined) checkMessageBody(body, memberPath(path, 'body'));
  checkAttachments(attachments, memberPath(path, 'attachments'));
  if (replyTo !== undefined) {
    checkPart(replyTo, memberPath(path, 'reply_to'));
    checkAccountId(network, replyTo.from, memberPath(path, 'reply_to.from'));
  }
}

/**
 * Returns whether a reply's reference can belong to a conversation: it names one of the two
 * accounts. Otherwise the client ignores the reference and shows the message (04 §7.3). Whether the
 * named message went between the same two accounts is looked up in local history.
 *
 * @example
 * isReplyWithin({ from: peer, message_id: envelope.message_id }, envelope);
 */
export function isReplyWithin(
  reference: DirectMessageReference,
  envelope: { readonly from: string; readonly to: string },
): boolean {
  return reference.from === envelope.from || reference.from === envelope.to;
}
