/** The contents of group messages (05 §4.13, §14.2). Relays cannot read them. */
import { badRequest, ProtocolError } from '../errors.ts';
import type { Network } from '../identity/network.ts';
import { decodeUtf8, parseJson } from '../json/parse.ts';
import { isJsonObject, type JsonObject } from '../json/types.ts';
import { limits } from '../limits.ts';
import { checkMessageBody, MessageBody } from '../messages/body.ts';
import { ContentReference, checkAttachments } from '../messages/content-reference.ts';
import { checkNoNull, checkObject, checkText, type Static, Type, TypeName } from '../schema.ts';

/** A message of people: type `group.message.content`. */
export const GroupMessage = Type.Object({
  $type: TypeName,
  body: Type.Optional(MessageBody),
  attachments: Type.Optional(Type.Array(ContentReference)),
  /** Sequence of the event replied to, smaller than the own. */
  reply_to_seq: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
});
export type GroupMessage = Static<typeof GroupMessage>;

/** Sets or clears the sender's nickname in this group: type `group.member.nickname.update`. */
export const GroupMemberNicknameUpdate = Type.Object({
  $type: TypeName,
  /** `null` clears; text is kept as it is, leading and trailing white space too. */
  nickname: Type.Union([Type.String(), Type.Null()]),
});
export type GroupMemberNicknameUpdate = Static<typeof GroupMemberNicknameUpdate>;

/**
 * Checks a message of people: a body or attachments, each sound, no attachment twice.
 *
 * @param sequence that of the event, if known: a reply refers to an earlier event
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupMessage(network, value, event.sequence);
 * console.log(value.body?.text);
 */
export function checkGroupMessage(
  network: Network,
  value: unknown,
  sequence?: number,
): asserts value is GroupMessage {
  checkObject(network, { type: 'group.message.content', schema: GroupMessage }, value);
  checkNoNull(value);
  const { body, attachments = [], reply_to_seq: replyTo } = value;
  if (body === undefined && attachments.length === 0) {
    throw badRequest('', 'neither body nor attachments');
  }
  if (body !== undefined) checkMessageBody(body, 'body');
  checkAttachments(attachments);
  if (replyTo !== undefined && sequence !== undefined && replyTo >= sequence) {
    throw badRequest('reply_to_seq', 'not before this message');
  }
}

/**
 * Checks a nickname update. Account, group or role among its unknown members mean nothing.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupMemberNicknameUpdate(network, value);
 * console.log(value.nickname);
 */
export function checkGroupMemberNicknameUpdate(
  network: Network,
  value: unknown,
): asserts value is GroupMemberNicknameUpdate {
  const definition = {
    type: 'group.member.nickname.update',
    schema: GroupMemberNicknameUpdate,
  };
  checkObject(network, definition, value);
  const { nickname, ...rest } = value;
  checkNoNull(rest);
  if (nickname !== null) {
    checkText(nickname, { maxBytes: limits.nicknameBytes, allowEmpty: false }, 'nickname');
  }
}

/** Plaintext of a group message by its `$type`. */
export type GroupContent =
  | { readonly kind: 'message'; readonly content: GroupMessage }
  | { readonly kind: 'nickname'; readonly content: GroupMemberNicknameUpdate }
  /** May be kept as not understood; changes nothing (05 §4.13). */
  | { readonly kind: 'unknown'; readonly content: JsonObject };

/**
 * Checks a plaintext object by its `$type`.
 *
 * @param sequence that of the event
 * @throws ProtocolError `bad_request`: the message is rejected, synchronisation goes on
 * @example
 * const content = checkGroupContent(network, value, event.sequence);
 */
export function checkGroupContent(
  network: Network,
  value: unknown,
  sequence?: number,
): GroupContent {
  if (!isJsonObject(value)) throw badRequest('', 'expected an object');
  switch (value.$type) {
    case network.type('group.message.content'):
      checkGroupMessage(network, value, sequence);
      return { kind: 'message', content: value };
    case network.type('group.member.nickname.update'):
      checkGroupMemberNicknameUpdate(network, value);
      return { kind: 'nickname', content: value };
    default:
      if (typeof value.$type !== 'string') throw badRequest('$type', 'expected a string');
      if (Object.hasOwn(value, '$context')) throw badRequest('$context', 'is never transmitted');
      return { kind: 'unknown', content: value };
  }
}

/**
 * Reads the plaintext that `openGroupMessage` gave: JSON of chapter 01, then the rules of its type.
 *
 * @param sequence that of the event
 * @throws ProtocolError `bad_request`
 * @example
 * const content = readGroupContent(network, plaintext, event.sequence);
 * if (content.kind === 'message') console.log(content.content.body?.text);
 */
export function readGroupContent(
  network: Network,
  plaintext: Uint8Array,
  sequence?: number,
): GroupContent {
  return checkGroupContent(network, parsePlaintext(plaintext), sequence);
}

function parsePlaintext(plaintext: Uint8Array): unknown {
  try {
    return parseJson(decodeUtf8(plaintext));
  } catch (cause) {
    throw new ProtocolError('bad_request', 'plaintext: not JSON of the protocol', { cause });
  }
}
