/** Reads stored messages in batches for a hand-over, newest first (decision 0039). */
import type { JsonObject } from '@posthouse/protocol/json';
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import type { AccountCore } from '../core.ts';
import type { MessageRow } from '../messages/message-rows.ts';
import type { Collection } from '../store/collection.ts';
import type { StoreRange, StoreReader } from '../store/index.ts';
import {
  canonicalJson,
  checkDepth,
  groupMessage,
  groupRows,
  isGroupMessage,
  limits,
  messageArrivals,
  messagePrefix,
  messageRow,
  ProtocolError,
  shownMessages,
  utf8Length,
} from '../taken.ts';
import type { HandOverRow } from './hand-over-rows.ts';
import {
  type DirectMessageCopy,
  type GroupMessageCopy,
  mostBytes,
  mostMessageBytes,
  mostMessages,
} from './history-object.ts';

/** Index entries read at once. */
const pageSize = 100;
/** Index entries read for one batch, whether they are handed over or not. */
const mostRead = 2_000;
/** Index entries that are counted at once. */
const countedAtOnce = 1_000;
/** Messages from before `since`, one after another, after which an index is taken for read. */
const mostOld = 1_000;
/** Levels of JSON around a message in the object. */
const depthAround = 3;

/** The index of all messages with people, newest last. */
const everyPerson = '';

/** What the next object of a hand-over has, and where the one after it goes on. */
export interface HistoryBatch {
  readonly messages: DirectMessageCopy[];
  readonly group_messages: GroupMessageCopy[];
  readonly skipped: number;
  /** `undefined` at the end. */
  readonly next: HandOverRow['at'] | undefined;
}

/**
 * Lists the indexes to read: of the given conversations, or of all people and the groups of which the account
 * is a member. The other device knows no others.
 */
export async function historySources(
  tx: StoreReader,
  conversations: readonly ConversationKey[] | undefined,
): Promise<string[]> {
  if (conversations !== undefined) return conversations.map(messagePrefix);
  const joined = (await groupRows(tx)).filter(({ standing }) => standing === 'member');
  return [everyPerson, ...joined.map(({ group_id: id }) => messagePrefix({ kind: 'group', id }))];
}

/** Counts the messages of the indexes, without reading them: in pages, because there may be a million. */
export async function countHistory(
  { store }: Pick<AccountCore, 'store'>,
  sources: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (const prefix of sources) {
    for (let after: string | undefined = ''; after !== undefined; ) {
      signal.throwIfAborted();
      const range: StoreRange = { prefix, after, limit: countedAtOnce };
      const page: readonly { readonly key: string }[] = await store.read((tx) =>
        indexOf(prefix).list(tx, range),
      );
      count += page.length;
      after = page.at(-1)?.key;
    }
  }
  return count;
}

function indexOf(prefix: string): Collection<string> {
  return prefix === everyPerson ? messageArrivals : shownMessages;
}

/** Reads the next batch; it may be empty although there is more. */
export async function nextHistory(tx: StoreReader, row: HandOverRow): Promise<HistoryBatch> {
  const batch = { messages: [], group_messages: [] } as Pick<
    HistoryBatch,
    'messages' | 'group_messages'
  >;
  let { source, before } = row.at;
  let [bytes, read, skipped, old] = [0, 0, 0, 0];
  for (let prefix = row.sources[source]; prefix !== undefined; prefix = row.sources[source]) {
    const range = {
      prefix,
      ...(before !== undefined && { before }),
      limit: pageSize,
      reverse: true,
    };
    const entries = await indexOf(prefix).list(tx, range);
    for (const { key, value } of entries) {
      const found = await copyOf(tx, prefix, { key, value, since: row.since });
      read += 1;
      old = found === undefined && row.since !== undefined ? old + 1 : 0;
      if (found !== undefined) {
        const size = utf8Length(canonicalJson(found.copy));
        const isFull =
          bytes + size > mostBytes ||
          batch.messages.length + batch.group_messages.length >= mostMessages;
        const isFirst = bytes === 0;
        if (!isFirst && isFull) return { ...batch, skipped, next: nextAt(source, before) };
        if (size > mostMessageBytes || !fits(found.copy.content)) skipped += 1;
        else {
          bytes += size;
          if (found.kind === 'person') batch.messages.push(found.copy);
          else batch.group_messages.push(found.copy);
        }
      }
      before = key;
      if (read >= mostRead) return { ...batch, skipped, next: nextAt(source, before) };
    }
    if (entries.length === pageSize && old < mostOld) continue;
    source += 1;
    [before, old] = [undefined, 0];
  }
  return { ...batch, skipped, next: undefined };
}

function nextAt(source: number, before: string | undefined): HandOverRow['at'] {
  return { source, ...(before !== undefined && { before }) };
}

type Copy =
  | { readonly kind: 'person'; readonly copy: DirectMessageCopy }
  | { readonly kind: 'group'; readonly copy: GroupMessageCopy };

async function copyOf(
  tx: StoreReader,
  prefix: string,
  entry: { readonly key: string; readonly value: string; readonly since: number | undefined },
): Promise<Copy | undefined> {
  const [from = '', message_id = ''] = entry.value.split('/');
  const since = entry.since ?? Number.MIN_SAFE_INTEGER;
  if (prefix.startsWith('group/')) {
    const groupId = prefix.slice('group/'.length, -1);
    const sequence = Number.parseInt(entry.key.slice(prefix.length), 10);
    const row = await groupMessage(tx, groupId, { sequence, message_id });
    if (row === undefined || !isGroupMessage(row) || row.accepted_at < since) return undefined;
    const {
      kind: _kind,
      outcome: _outcome,
      content = {},
      envelope: _sealed,
      handedOverBy: _by,
      ...rest
    } = row;
    return { kind: 'group', copy: { ...rest, content: content as JsonObject & { $type: string } } };
  }
  const row = await messageRow(tx, { from, message_id });
  if (row?.content === undefined || !isDelivered(row)) return undefined;
  const { to, from_device_id, created_at, accepted_at = created_at, digest, content } = row;
  if (accepted_at < since) return undefined;
  const facts = { message_id, from, from_device_id, to, created_at, accepted_at, digest };
  return { kind: 'person', copy: { ...facts, content: content as JsonObject & { $type: string } } };
}

/** Whether a message was received, or accepted by the relay. */
function isDelivered({ status, digest }: MessageRow): boolean {
  const isOpen = status === undefined || status === 'delivering' || status === 'target_accepted';
  return isOpen && digest !== '';
}

/** Whether content can be one member deeper in an object of the protocol. */
function fits(content: JsonObject): boolean {
  try {
    checkDepth(content, limits.jsonDepth - depthAround);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}
