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
  newMessageId,
  reducePost,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { checkReferences } from '../../content/check-references.ts';
import { messageContent } from '../../conversations/message-content.ts';
import type { AccountCore } from '../../core.ts';
import { unixSeconds } from '../../environment.ts';
import { checkInput } from '../../errors.ts';
import type { StoreReader } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';
import { markPosted, type NamedDraft } from '../../sync/draft-outcomes.ts';
import { recordStatus } from '../../sync/message-status.ts';
import { pendingOf, whileKept } from '../../sync/outbox.ts';
import {
  alreadySent,
  dismissOutcome,
  outcomeOf,
  sentSequence,
  settledOutcome,
  unknownMessage,
  untilEnded,
} from '../../sync/write-outcomes.ts';
import {
  endOf,
  outboxKeys,
  pendingById,
  type WriteOutcome,
  type WrittenMessage,
  writtenTo,
} from '../../sync/written-messages.ts';
import { type ChannelRow, requireChannel } from '../channel-rows.ts';
import {
  type ContentWrite,
  channelOutbox,
  endWrite,
  enqueueWrite,
  isContentWrite,
  type PendingWrite,
  statusSubject,
  writeIdOf,
} from '../outbox.ts';
import { closedChannel, outgoingToChannel } from '../send-waiting.ts';
import { listPosts, projectedPost } from '../timeline/channel-entries.ts';

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

/** A post, and what became of it. */
export interface ChannelPostStatus extends Omit<WriteOutcome, 'status'> {
  readonly channelId: string;
  readonly status: WriteOutcome['status'] | 'waiting';
}

/**
 * Signs and stores a post, after what waits already, in the order of the calls. It is sent
 * unchanged: with another ID it would be a second post (06 §8.7).
 *
 * @returns its ID
 * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
 */
export async function postToChannel(
  core: AccountCore,
  channelId: string,
  draft: ChannelDraft & NamedDraft,
): Promise<string> {
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
  await store(core, { ...draft, channelId }, async () => {
    await checkReferences('post', post);
    return () => ({ write: 'post', post, waiting: true, created_at: unixSeconds(core.clock) });
  });
  return post.message_id;
}

/**
 * Publishes a post, and waits for the host's answer.
 *
 * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`, `cancelled`
 * @throws RelayRefused; RelayUnreachable with `kept`
 */
export async function publish(
  core: AccountCore,
  { channelId, draft }: { readonly channelId: string; readonly draft: ChannelDraft },
  signal: AbortSignal,
): Promise<SentToChannel> {
  const id = await postToChannel(core, channelId, draft);
  const outcome = await untilEnded(core, outgoingToChannel(core, channelId), { id, signal });
  return { channelId, messageId: id, sequence: sentSequence('channel.post', outcome) };
}

/** Waits until a post of this device has the host's answer. */
export async function settledPost(
  core: AccountCore,
  { channelId, messageId }: { readonly channelId: string; readonly messageId: string },
  signal: AbortSignal,
): Promise<ChannelPostStatus> {
  const find = async (tx: StoreReader) =>
    (await waitingPost(tx, channelId, messageId)) && messageId;
  const outgoing = outgoingToChannel(core, channelId);
  return { channelId, ...(await settledOutcome(core, outgoing, { messageId, find, signal })) };
}

/**
 * Cancels a post that was not sent, or one that failed or was rejected.
 * @throws ClientError `already_sent`, `invalid_input`
 */
export async function cancelPost(
  core: AccountCore,
  { channelId, messageId }: { readonly channelId: string; readonly messageId: string },
): Promise<ChannelPostStatus> {
  const outcome = await core.store.write(async (tx) => {
    const ended = await outcomeOf(tx, channelId, messageId);
    const conversation = { kind: 'channel', id: channelId } as const;
    if (ended !== undefined) {
      return await dismissOutcome(tx, conversation, { ...ended, id: messageId });
    }
    const pending = await waitingPost(tx, channelId, messageId);
    if (pending === undefined) throw unknownMessage();
    if (pending.value.waiting === undefined) throw alreadySent();
    await endWrite(tx, channelId, { pending, status: 'cancelled' });
    return { messageId, status: 'cancelled' } as const;
  });
  core.sender.answered(messageId);
  return { channelId, ...outcome };
}

/** A post that this device wrote and that is not in the channel's stored timeline. */
export interface WrittenPost extends WrittenMessage {
  readonly channelId: string;
}

/** Posts among which one is looked for whose answer was lost. */
const newestPosts = 100;

/** Lists the posts that were written and are not in the timeline, in the order of writing. */
export async function listWrittenPosts(
  { account }: AccountCore,
  tx: StoreReader,
  channelId: string,
): Promise<WrittenPost[]> {
  const written = await writtenTo(tx, channelOutbox, channelId);
  if (written.length === 0) return [];
  const newest = await listPosts(tx, channelId, { limit: newestPosts, newestFirst: true });
  const read = new Set(newest.map(({ messageId }) => messageId));
  return written.flatMap(({ value, ...outcome }) => {
    if (value.write !== 'post' || read.has(value.post.message_id)) return [];
    const { post, waiting, created_at: createdAt = value.sent_at } = value;
    return {
      ...{ channelId, messageId: post.message_id, from: account },
      ...(createdAt !== undefined && { createdAt }),
      status: waiting ? 'waiting' : 'sending',
      ...endOf(outcome),
      ...messageContent(post),
    } as WrittenPost;
  });
}

async function waitingPost(
  tx: StoreReader,
  channelId: string,
  messageId: string,
): Promise<PendingWrite<ContentWrite> | undefined> {
  const found = await pendingById(tx, channelOutbox, keyOf(channelId, messageId));
  if (found !== undefined && isContentWrite(found)) return found;
  const rows = await pendingOf(tx, channelOutbox, channelId);
  return rows.filter(isContentWrite).find(({ value }) => writeIdOf(value) === messageId);
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
  checkInput('post', () => {
    checkChannelPostEdit(network, edit);
    checkChannelContentSize(edit);
  });
  await writeChange(core, { channelId, target: sequence, value: { write: 'edit', edit } }, signal);
}

/** Checks that an edit leaves a post whose references find their attachments (06 §6.2). */
async function checkEdited(core: AccountCore, edit: ChannelPostEdit): Promise<void> {
  const { channel_id, target_sequence } = edit;
  const post = await core.store.read((tx) => projectedPost(tx, channel_id, target_sequence));
  const edited = checkInput('post', () => post && reducePost(post.state, edit));
  if (edited !== undefined) await checkReferences('post', edited);
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
  await store(core, { channelId }, async () => {
    if (value.write === 'edit') await checkEdited(core, value.edit);
    return ({ span }) => {
      const after = Math.max(target, span?.position ?? -1);
      return { ...value, behind: after, waiting: true };
    };
  });
  const { lane, work } = outgoingToChannel(core, channelId);
  const id = (value.write === 'edit' ? value.edit : value.deletion).device_signature;
  const isKept = async (tx: StoreReader) => (await waitingPost(tx, channelId, id)) !== undefined;
  await whileKept(core.store, isKept, () =>
    core.sender.untilAnswered(id, { conversation: lane, work, signal }),
  );
}

/** Appends a write to the channel, after checks that keep its place in the order of the calls. */
async function store(
  core: AccountCore,
  { channelId, ...named }: NamedDraft & { readonly channelId: string },
  check: () => Promise<(row: ChannelRow) => ContentWrite>,
): Promise<void> {
  await core.sender.writing.run(async () => {
    const valueFor = await check();
    await core.store.write(async (tx) => {
      const row = await requireChannel(tx, channelId);
      if (row.closed_at !== undefined) throw closedChannel();
      await markPosted(tx, named);
      const { key, value } = await enqueueWrite(tx, channelId, valueFor(row));
      if (value.write === 'post') await outboxKeys.put(tx, keyOf(channelId, writeIdOf(value)), key);
      const conversation = { kind: 'channel', id: channelId } as const;
      await recordStatus(tx, { conversation, ...statusSubject(value), status: 'waiting' });
    });
  });
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
