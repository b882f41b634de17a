/** Posting, awaiting and cancelling messages to groups (05 §13.28). */
import { checkGroupContent, limits, newMessageId, utf8 } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { checkReferences } from '../../content/check-references.ts';
import { type MessageContent, messageContent } from '../../conversations/message-content.ts';
import type { AccountCore } from '../../core.ts';
import { unixSeconds } from '../../environment.ts';
import { ClientError, checkInput, isClientError } from '../../errors.ts';
import type { StoreReader } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';
import { markPosted, type NamedDraft } from '../../sync/draft-outcomes.ts';
import { recordStatus } from '../../sync/message-status.ts';
import { enqueue, pendingOf, whileKept } from '../../sync/outbox.ts';
import {
  alreadySent,
  dismissOutcome,
  type Outgoing,
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
import { groupRow, memberOf } from '../group-rows.ts';
import { endMessage, firstIdOf, groupOutbox, messageIdOf, type PendingMessage } from '../outbox.ts';
import { refreshGroup, requireVerified } from './read-group.ts';
import { giveUpUnsealed, groupLane, isBlocked, sendWaitingToGroup } from './send-group-message.ts';

/** A message that the host accepted. The sequence is the host's claim until it is read. */
export interface SentToGroup {
  readonly groupId: string;
  readonly messageId: string;
  readonly sequence: number;
}

/**
 * Stores content for a group, after what waits already, in the order of the calls.
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `invalid_input`
 */
export async function postToGroup(
  core: AccountCore,
  groupId: string,
  content: JsonObject,
  named: NamedDraft = {},
): Promise<PendingMessage> {
  checkInput('group message', () => checkGroupContent(core.network, content));
  // Sealing adds more; the exact size is known only then.
  if (utf8(canonicalJson(content)).length * (4 / 3) > limits.groupMessageBytes) {
    throw new ClientError('invalid_input', `group message: over ${limits.groupMessageBytes} bytes`);
  }
  return await core.sender.writing.run(async () => {
    await checkReferences('group message', content as Parameters<typeof checkReferences>[1]);
    const created_at = unixSeconds(core.clock);
    const value = { message_id: newMessageId(core.random), created_at, content };
    return await core.store.write(async (tx) => {
      await requireOpen(tx, { groupId, account: core.account });
      await markPosted(tx, named);
      const key = await enqueue(tx, groupOutbox, { id: groupId, value });
      await outboxKeys.put(tx, keyOf(groupId, value.message_id), key);
      const conversation = { kind: 'group', id: groupId } as const;
      await recordStatus(tx, { conversation, messageId: value.message_id, status: 'waiting' });
      return { key, value };
    });
  });
}

/** @throws ClientError if nothing can be sent to the group, as far as this device knows */
async function requireOpen(
  tx: StoreReader,
  { groupId, account }: { readonly groupId: string; readonly account: string },
): Promise<void> {
  const row = await groupRow(tx, groupId);
  const isOutside = row === undefined || row.standing === 'ended' || row.standing === 'applied';
  if (isOutside || row.facts !== undefined) {
    requireVerified(row, { groupId, member: await memberOf(tx, groupId, account) });
  }
  if (isOutside) throw new ClientError('not_a_member', `the account is no member of ${groupId}`);
  if (row.facts?.status === 'closed') {
    throw new ClientError('not_permitted', 'the group is closed: nothing can be sent to it');
  }
}

/**
 * Sends content to a group, after what waits already. If its epoch is over, the group is read and
 * the message sealed again with a new ID. If an answer is lost or the host is unreachable, the
 * message waits, and the next `sync` sends it; if it cannot be sealed now, it is given up.
 *
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `group_behind`,
 *   `group_key_missing`, `invalid_input`, `no_relay`, `cancelled`
 * @throws RelayRefused; RelayUnreachable with `kept`
 */
export async function sendToGroup(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<SentToGroup> {
  const pending = await postOrRefresh(core, { groupId, content }, signal);
  const id = firstIdOf(pending.value);
  const isKept = async (tx: StoreReader) => (await outcomeOf(tx, groupId, id)) === undefined;
  const send = async () => {
    const outcome = await untilEnded(core, outgoingTo(core, groupId), { id, signal });
    return {
      groupId,
      messageId: outcome.messageId,
      sequence: sentSequence('group.message.send', outcome),
    };
  };
  return await whileKept(core.store, isKept, () =>
    send().catch(async (error: unknown) => {
      if (isBlocked(error)) await giveUpUnsealed(core, groupId, { pending, error });
      throw error;
    }),
  );
}

/**
 * Stores content for a group at once, so that no later call takes its place; only if the account is
 * no member, as far as this device knows, the group is read first.
 */
async function postOrRefresh(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<PendingMessage> {
  try {
    return await postToGroup(core, groupId, content);
  } catch (error) {
    if (!isClientError(error, 'not_a_member')) throw error;
    await refreshGroup(core, groupId, signal);
    return await postToGroup(core, groupId, content);
  }
}

/** A message to a group, and what became of it. */
export interface GroupMessageStatus extends Omit<WriteOutcome, 'status'> {
  readonly groupId: string;
  readonly status: WriteOutcome['status'] | 'waiting';
}

/** Waits until a message to a group has an answer. */
export async function settledInGroup(
  core: AccountCore,
  { groupId, messageId }: { readonly groupId: string; readonly messageId: string },
  signal: AbortSignal,
): Promise<GroupMessageStatus> {
  const find = async (tx: StoreReader) => {
    const pending = await pendingMessage(tx, groupId, messageId);
    return pending && firstIdOf(pending.value);
  };
  const outgoing = outgoingTo(core, groupId);
  return { groupId, ...(await settledOutcome(core, outgoing, { messageId, find, signal })) };
}

/**
 * Cancels a message that is not sealed, or one that failed or was rejected.
 * @throws ClientError `already_sent`, `invalid_input`
 */
export async function cancelInGroup(
  core: AccountCore,
  { groupId, messageId }: { readonly groupId: string; readonly messageId: string },
): Promise<GroupMessageStatus> {
  const outcome = await core.store.write(async (tx) => {
    const ended = await outcomeOf(tx, groupId, messageId);
    const conversation = { kind: 'group', id: groupId } as const;
    if (ended !== undefined) {
      return await dismissOutcome(tx, conversation, { ...ended, id: messageId });
    }
    const pending = await pendingMessage(tx, groupId, messageId);
    if (pending === undefined) throw unknownMessage();
    if (pending.value.envelope !== undefined) throw alreadySent();
    await endMessage(tx, groupId, { pending, status: 'cancelled' });
    return { messageId, status: 'cancelled' } as const;
  });
  core.sender.answered(messageId);
  return { groupId, ...outcome };
}

/** A message to a group that this device wrote and that is not in the stored timeline. */
export interface WrittenGroupMessage extends WrittenMessage {
  readonly groupId: string;
  /** Sequence of the message that this one answers. */
  readonly replyTo?: number;
}

/** Lists what was written to a group and is not in its timeline, in the order of writing. */
export async function listWrittenToGroup(
  { account }: AccountCore,
  tx: StoreReader,
  groupId: string,
): Promise<WrittenGroupMessage[]> {
  const written = await writtenTo(tx, groupOutbox, groupId);
  return written.flatMap(({ value, firstId = firstIdOf(value), ...outcome }) => {
    const { content, envelope, created_at: createdAt = envelope?.created_at } = value;
    if (!String(content.$type).endsWith('.group.message.content')) return [];
    const { reply_to_seq: replyTo, ...said } = content as MessageContent & {
      readonly reply_to_seq?: number;
    };
    return {
      ...{ groupId, messageId: firstId, from: account },
      ...(createdAt !== undefined && { createdAt }),
      status: envelope === undefined ? 'waiting' : 'sending',
      ...endOf(outcome),
      ...messageContent(said),
      ...(replyTo !== undefined && { replyTo }),
    } as WrittenGroupMessage;
  });
}

/** Finds a waiting message by the ID that it has, or had when it was written. */
async function pendingMessage(
  tx: StoreReader,
  groupId: string,
  messageId: string,
): Promise<PendingMessage | undefined> {
  const found = await pendingById(tx, groupOutbox, keyOf(groupId, messageId));
  if (found !== undefined) return found;
  const rows = await pendingOf(tx, groupOutbox, groupId);
  return rows.find(({ value }) => [firstIdOf(value), messageIdOf(value)].includes(messageId));
}

function outgoingTo(core: AccountCore, groupId: string): Outgoing {
  return { id: groupId, lane: groupLane(groupId), work: sendWaitingToGroup(core, groupId) };
}
