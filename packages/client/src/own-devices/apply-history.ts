/** Stores messages that another own device handed over (decision 0039). */
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';
import type { GroupMessageRow } from '../groups/timeline/group-entry.ts';
import type { RecordOutcome } from '../messages/message-rows.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  addEarlierMessage,
  canonicalJson,
  checkAccountId,
  groupEntry,
  groupRow,
  hasMessageId,
  isGroupMessage,
  isOwnDeviceType,
  messageRow,
  ProtocolError,
  parseContent,
  putGroupEntry,
  readGroupContent,
  removeMessage,
  removeUndecrypted,
  unixSeconds,
  utf8,
} from '../taken.ts';
import type { DirectMessageCopy, GroupMessageCopy, History } from './history-object.ts';

/**
 * Stores the messages that are not here yet, at their places, as read. What this device cannot have
 * received is left out: this device cannot verify signatures of envelopes that it does not get, so
 * each message says which device it came from.
 */
export async function applyHistory(
  core: AccountCore,
  tx: StoreWriter,
  { history, deviceId }: { readonly history: History; readonly deviceId: string },
): Promise<readonly AccountEvent[]> {
  const { messages = [], group_messages = [], sent, total, complete: isComplete } = history;
  let added = 0;
  for (const copy of messages) added += Number(await addDirect(core, tx, { copy, deviceId }));
  for (const copy of group_messages) added += Number(await addGroup(core, tx, { copy, deviceId }));
  return [{ kind: 'history', deviceId, added, sent, total, isComplete }];
}

async function addDirect(
  core: AccountCore,
  tx: StoreWriter,
  { copy, deviceId }: { readonly copy: DirectMessageCopy; readonly deviceId: string },
): Promise<boolean> {
  const { from, to, message_id, accepted_at } = copy;
  const outcome = outcomeOf(core, copy);
  if (outcome === undefined) return false;
  const known = await messageRow(tx, { from, message_id });
  // What was received but could not be opened may be read now.
  if (known !== undefined && known.reason !== 'not_decryptable') return false;
  if (known !== undefined) await removeMessage(core, tx, known);
  const now = unixSeconds(core.clock);
  const facts = { from, to, message_id, from_device_id: copy.from_device_id, digest: copy.digest };
  await addEarlierMessage(core, tx, {
    ...facts,
    created_at: copy.created_at,
    accepted_at: Math.min(accepted_at, now),
    content: copy.content,
    outcome,
    handedOverBy: deviceId,
  });
  return true;
}

/** Returns what the message is; `undefined` if the account cannot have it. */
function outcomeOf(core: AccountCore, copy: DirectMessageCopy): RecordOutcome | undefined {
  const { from, to, content } = copy;
  const { account, network } = core;
  if (from !== account && to !== account) return undefined;
  try {
    checkAccountId(network, from === account ? to : from);
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
  const parsed = parseContent(network, utf8(canonicalJson(content)), { account });
  if (parsed.kind === 'known') return parsed.name === 'message.direct' ? 'applied' : undefined;
  return parsed.kind === 'unknown' && !isOwnDeviceType(parsed.type) ? 'stored' : undefined;
}

async function addGroup(
  core: AccountCore,
  tx: StoreWriter,
  { copy, deviceId }: { readonly copy: GroupMessageCopy; readonly deviceId: string },
): Promise<boolean> {
  const { group_id, sequence, message_id } = copy;
  const row = await groupRow(tx, group_id);
  if (row === undefined || row.isForgotten) return false;
  const at: Omit<GroupMessageRow, 'outcome'> = { ...copy, kind: 'message', handedOverBy: deviceId };
  const entry: GroupMessageRow = { ...at, outcome: 'applied' };
  if (!isGroupMessage(entry) || !hasValidContent(core, entry.content, sequence)) return false;
  const before = await groupEntry(tx, group_id, sequence);
  if (before === undefined) {
    // Another sequence of the same message was verified here.
    if (await hasMessageId(tx, entry)) return false;
  } else {
    const isSame = before.kind === 'message' && before.message_id === message_id;
    if (!isSame || before.from !== copy.from || before.outcome !== 'pending') return false;
    await removeUndecrypted(tx, before);
  }
  await putGroupEntry(core, tx, entry, { isRead: true });
  return true;
}

function hasValidContent(
  { network }: AccountCore,
  content: JsonObject | undefined,
  sequence: number,
): boolean {
  if (content === undefined) return false;
  try {
    readGroupContent(network, utf8(canonicalJson(content)), sequence);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}
