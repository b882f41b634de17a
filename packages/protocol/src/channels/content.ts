import { badRequest } from '../errors.ts';
import type { Network } from '../identity/network.ts';
import type { JsonObject } from '../json/types.ts';
import { limits } from '../limits.ts';
import { checkMessageBody, MessageBody } from '../messages/body.ts';
import { ContentReference, checkAttachments } from '../messages/content-reference.ts';
import {
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  checkSchema,
  checkText,
  MessageId,
  Signature,
  type Static,
  type TSchema,
  Type,
  TypeName,
} from '../schema.ts';
import { ChannelId } from './ids.ts';

/** Sequence of a post; the creation event has 0, so a target is positive (06 §6.2). */
export const TargetSequence = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

/** Parameters of `channel.post`, stored as they are (06 §6.1). */
export const ChannelPost = Type.Object({
  $type: TypeName,
  channel_id: ChannelId,
  message_id: MessageId,
  body: Type.Optional(MessageBody),
  attachments: Type.Optional(Type.Array(ContentReference)),
  device_signature: Signature,
});
export type ChannelPost = Static<typeof ChannelPost>;

/**
 * Parameters of `channel.post.edit`, stored as they are (06 §6.2). A member that is absent keeps
 * the current value, `null` removes it, anything else replaces it whole; so do unknown members.
 */
export const ChannelPostEdit = Type.Object({
  $type: TypeName,
  channel_id: ChannelId,
  target_sequence: TargetSequence,
  body: Type.Optional(orNull(MessageBody)),
  attachments: Type.Optional(orNull(Type.Array(ContentReference))),
  device_signature: Signature,
});
export type ChannelPostEdit = Static<typeof ChannelPostEdit>;

/** Parameters of `channel.post.delete`, stored as they are (06 §6.3). */
export const ChannelPostDelete = Type.Object({
  $type: TypeName,
  channel_id: ChannelId,
  target_sequence: TargetSequence,
  reason: Type.Optional(Type.String()),
  device_signature: Signature,
});
export type ChannelPostDelete = Static<typeof ChannelPostDelete>;

/** Parameters of `channel.post.report`: no event, never public, not signed (06 §8.10). */
export const ChannelPostReport = Type.Object({
  channel_id: ChannelId,
  target_sequence: TargetSequence,
  reason: Type.String(),
});
export type ChannelPostReport = Static<typeof ChannelPostReport>;

/** Anything `channel.post`, `channel.post.edit` and `channel.post.delete` store. */
export type ChannelContent = ChannelPost | ChannelPostEdit | ChannelPostDelete;

/**
 * Checks a post: structure, body, attachments, and that there is something in it.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelPost(network, value);
 * console.log(value.message_id);
 */
export function checkChannelPost(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ChannelPost {
  checkObject(network, { type: 'channel.post', schema: ChannelPost }, value, path);
  checkNoNull(value, path);
  checkParts(value);
  checkPostContent(value, path);
}

/**
 * Checks an edit by itself: structure, body, attachments, names, and that it changes something.
 * What the post becomes is `reducePost`'s to check.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelPostEdit(network, value);
 * console.log(value.target_sequence);
 */
export function checkChannelPostEdit(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ChannelPostEdit {
  checkObject(network, { type: 'channel.post.edit', schema: ChannelPostEdit }, value, path);
  const members = value as JsonObject;
  for (const name of Object.keys(members)) {
    // `null` removes a member of the post; deeper it has no meaning (01 J9, §2.7).
    if (members[name] !== null) checkNoNull(members[name], path === '' ? name : `${path}.${name}`);
  }
  checkParts(value);
  if (Object.hasOwn(members, 'message_id')) {
    // The other names of a post are defined for an edit too, and `$context` is refused anyway.
    throw badRequest(path, 'message_id cannot be edited');
  }
  if (patchNames(members).length === 0) throw badRequest(path, 'the edit changes nothing');
}

/**
 * Checks a deletion.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelPostDelete(network, value);
 * console.log(value.reason);
 */
export function checkChannelPostDelete(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ChannelPostDelete {
  checkObject(network, { type: 'channel.post.delete', schema: ChannelPostDelete }, value, path);
  checkNoNull(value, path);
  if (value.reason !== undefined) checkText(value.reason, { allowEmpty: false }, 'reason');
}

/**
 * Checks a report. The cap of `reason` is the relay's own.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChannelPostReport(value, 1_024);
 */
export function checkChannelPostReport(
  value: unknown,
  maxReasonBytes: number,
): asserts value is ChannelPostReport {
  checkSchema(ChannelPostReport, value);
  checkText(value.reason, { maxBytes: maxReasonBytes, allowEmpty: false }, 'reason');
}

/**
 * Checks the total size of a post, an edit or a deletion (06 §6).
 *
 * @returns its Canonical JSON
 * @throws ProtocolError `request_too_large`
 * @example
 * const text = checkChannelContentSize(post);
 */
export function checkChannelContentSize(content: ChannelContent): string {
  return checkCanonicalSize(content, limits.channelContentBytes, 'request');
}

/** Members of an edit that never reach the post (06 §6.2). */
const editOnly = new Set(['$type', 'channel_id', 'target_sequence', 'device_signature']);

/** Returns the names of the members by which an edit changes its post. */
export function patchNames(edit: JsonObject): string[] {
  return Object.keys(edit).filter((name) => !editOnly.has(name));
}

/**
 * Checks that a post, or what an edit made of it, has a body or an attachment.
 * @throws ProtocolError `bad_request`
 */
export function checkPostContent(
  { body, attachments = [] }: Pick<ChannelPost, 'body' | 'attachments'>,
  path = '',
): void {
  if (body === undefined && attachments.length === 0) {
    throw badRequest(path, 'neither a body nor an attachment');
  }
}

function checkParts({ body, attachments }: Pick<ChannelPostEdit, 'body' | 'attachments'>): void {
  if (body !== undefined && body !== null) checkMessageBody(body, 'body');
  if (attachments !== undefined && attachments !== null) checkAttachments(attachments);
}
