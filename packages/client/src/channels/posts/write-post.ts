/**
 * Writes posts, edits and deletions: signed once, enqueued, sent unchanged (06 §8.7 to §8.9,
 * §10.4).
 */
import {
  type ChannelPost,
  type ChannelPostDelete,
  type ChannelPostEdit,
  type ContentReference,
  checkChannelContentSize,
  checkChannelPost,
  checkChannelPostDelete,
  checkChannelPostEdit,
  type MessageBody,
  mayWriteChannel,
  newMessageId,
  reducePost,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { checkReferences } from '../../content/check-references.ts';
import type { AccountCore } from '../../core.ts';
import { ClientError, checkInput } from '../../errors.ts';
import { whileSending } from '../../sync/outbox.ts';
import { runToEnd } from '../../sync/run-to-end.ts';
import { flushChannel } from '../catch-up-channels.ts';
import { type ChannelRow, requireChannel } from '../channel-rows.ts';
import { type ContentWrite, enqueueWrite, type PendingWrite } from '../outbox.ts';
import { projectedPost } from '../timeline/channel-entries.ts';
import { currentDescriptor } from '../timeline/read-channel.ts';
import { submitContent } from './submit-post.ts';

/** A post: text or body, attachments, or both. */
export interface ChannelDraft {
  readonly text?: string;
  /** Media type of the text; plain text by default. */
  readonly contentType?: string;
  /** The whole body, instead of `text`. */
  readonly body?: MessageBody;
  /** Public like everything in a channel; the key of an encrypted attachment is public too. */
  readonly attachments?: readonly ContentReference[];
}

/** Changes of an edit: an absent member stays, `null` removes it, a value replaces it whole. */
export interface ChannelPatch {
  readonly text?: string | null;
  readonly contentType?: string;
  readonly body?: MessageBody | null;
  readonly attachments?: readonly ContentReference[] | null;
}

/** A post that the host accepted. The sequence is the host's claim until it is read. */
export interface SentToChannel {
  readonly channelId: string;
  readonly messageId: string;
  readonly sequence: number;
}

/**
 * Publishes a post. If the answer is lost, the post stays in the outbox and is sent again
 * unchanged: with another ID it would be a second post (06 §8.7).
 *
 * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
 * @throws RelayRefused; RelayUnreachable with the post still pending
 */
export async function publish(
  core: AccountCore,
  { channelId, draft }: { readonly channelId: string; readonly draft: ChannelDraft },
  signal: AbortSignal,
): Promise<SentToChannel> {
  const { network, random } = core;
  const { attachments } = draft;
  const body = bodyOf(draft);
  const post = sign(core, {
    $type: network.type('channel.post'),
    channel_id: channelId,
    message_id: newMessageId(random),
    ...(body !== undefined && { body }),
    ...(attachments !== undefined && { attachments: [...attachments] }),
  }) as ChannelPost;
  checkInput('post', () => {
    checkChannelPost(network, post);
    checkChannelContentSize(post);
  });
  await checkReferences('post', post);
  const row = await requireWriter(core, channelId, signal);
  const pending = await core.store.write((tx) =>
    enqueueWrite(tx, channelId, { write: 'post', post }),
  );
  const sequence = await submitInTurn(core, { row, pending }, signal);
  return { channelId, messageId: post.message_id, sequence: sequence as number };
}

/**
 * Edits a post of any author.
 *
 * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
 * @throws RelayRefused; RelayUnreachable with the edit still pending
 */
export async function editPost(
  core: AccountCore,
  target: { readonly channelId: string; readonly sequence: number; readonly patch: ChannelPatch },
  signal: AbortSignal,
): Promise<void> {
  const { network } = core;
  const { channelId, sequence, patch } = target;
  const body = bodyOf(patch);
  const { attachments } = patch;
  const edit = sign(core, {
    $type: network.type('channel.post.edit'),
    channel_id: channelId,
    target_sequence: sequence,
    ...(body !== undefined && { body }),
    ...(attachments !== undefined && { attachments: attachments && [...attachments] }),
  }) as ChannelPostEdit;
  const post = await core.store.read((tx) => projectedPost(tx, channelId, sequence));
  const edited = checkInput('post', () => {
    checkChannelPostEdit(network, edit);
    checkChannelContentSize(edit);
    return post && reducePost(post.state, edit);
  });
  if (edited !== undefined) await checkReferences('post', edited);
  await writeChange(core, { channelId, target: sequence, value: { write: 'edit', edit } }, signal);
}

/**
 * Deletes a post of any author, with all its edits and for good.
 *
 * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
 * @throws RelayRefused; RelayUnreachable with the deletion still pending
 */
export async function deletePost(
  core: AccountCore,
  target: { readonly channelId: string; readonly sequence: number; readonly reason?: string },
  signal: AbortSignal,
): Promise<void> {
  const { network } = core;
  const { channelId, sequence, reason } = target;
  const deletion = sign(core, {
    $type: network.type('channel.post.delete'),
    channel_id: channelId,
    target_sequence: sequence,
    ...(reason !== undefined && { reason }),
  }) as ChannelPostDelete;
  checkInput('post', () => {
    checkChannelPostDelete(network, deletion);
    checkChannelContentSize(deletion);
  });
  const value = { write: 'delete', deletion } as const;
  await writeChange(core, { channelId, target: sequence, value }, signal);
}

async function writeChange(
  core: AccountCore,
  {
    channelId,
    target,
    value,
  }: {
    readonly channelId: string;
    readonly target: number;
    readonly value:
      | { readonly write: 'edit'; readonly edit: ChannelPostEdit }
      | { readonly write: 'delete'; readonly deletion: ChannelPostDelete };
  },
  signal: AbortSignal,
): Promise<void> {
  const row = await requireWriter(core, channelId, signal);
  const after = Math.max(target, row.span?.position ?? -1);
  const pending = await core.store.write((tx) =>
    enqueueWrite(tx, channelId, { ...value, behind: after }),
  );
  await submitInTurn(core, { row, pending }, signal);
}

/** Submits a new write, after the writes that are pending already. */
async function submitInTurn(
  core: AccountCore,
  { row, pending }: { readonly row: ChannelRow; readonly pending: PendingWrite<ContentWrite> },
  signal: AbortSignal,
): Promise<number | undefined> {
  return await whileSending(core, pending.key, async () => {
    await runToEnd(core, flushChannel(core, row, signal));
    return await submitContent(core, { row, pending, isFresh: true }, signal);
  });
}

/**
 * Reads the row of a channel that the account may write to according to its verified descriptor.
 * @throws ClientError `unknown_channel`, `not_permitted`
 */
async function requireWriter(
  core: AccountCore,
  channelId: string,
  signal: AbortSignal,
): Promise<ChannelRow> {
  const row = await core.store.read((tx) => requireChannel(tx, channelId));
  if (mayWriteChannel(row.descriptor, core.account) && row.descriptor.status === 'active') {
    return row;
  }
  const descriptor = await currentDescriptor(core, row, signal);
  if (descriptor.status === 'closed') {
    throw new ClientError('not_permitted', 'the channel is closed: nothing can be written to it');
  }
  if (!mayWriteChannel(descriptor, core.account)) {
    throw new ClientError(
      'not_permitted',
      'only the owner and moderators can write: ask the owner to become a moderator',
    );
  }
  return row;
}

function bodyOf(draft: ChannelDraft): MessageBody | undefined;
function bodyOf(draft: ChannelPatch): MessageBody | null | undefined;
function bodyOf({ body, text, contentType = 'text/plain' }: ChannelPatch) {
  if (body !== undefined || text === undefined) return body;
  return text === null ? null : { content_type: contentType, text };
}

function sign({ network, device }: AccountCore, object: JsonObject) {
  return signAsDevice(network, object, device);
}
