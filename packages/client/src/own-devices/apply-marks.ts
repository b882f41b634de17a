/** Applies what a person read on another own device (decision 0039). */
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import type { AccountCore } from '../core.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  changeConversation,
  conversationRow,
  messageRow,
  readBatch,
  readBatchSize,
  recordEvents,
  unixSeconds,
  waitingMarks,
} from '../taken.ts';
import type { ReadMark } from './account-state.ts';

/** How much of an object is applied in the transaction of its record. */
export interface Capacity {
  /** Channels that this device takes in addition. */
  channels: number;
  /** Unread messages that are marked as read; the others follow after the page. */
  messages: number;
}

/**
 * Marks messages as read through a mark of another device; never backwards, and only in
 * conversations that this device has. What arrives later below the mark is read, too.
 *
 * @returns whether the number of unread messages changed
 */
export async function applyMark(
  core: AccountCore,
  tx: StoreWriter,
  { mark, capacity }: { readonly mark: ReadMark; readonly capacity: Capacity },
): Promise<boolean> {
  const key: ConversationKey = { kind: mark.kind, id: mark.id };
  const row = await conversationRow(tx, key);
  if (row === undefined) return false;
  const elsewhere =
    mark.kind === 'person'
      ? {
          // A time in the future would mark what comes next.
          through: Math.min(mark.accepted_at, unixSeconds(core.clock)),
          message: `${mark.from}/${mark.message_id}`,
        }
      : { through: mark.through };
  if (elsewhere.through < (row.readElsewhere?.through ?? 0)) return false;
  const through = mark.kind === 'person' ? await orderOf(tx, mark) : mark.through;
  const last = Number.parseInt(row.last ?? '0', 10);
  const readThrough = Math.max(row.readThrough ?? 0, Math.min(through ?? 0, last));
  await changeConversation(tx, key, (known) => ({
    ...known,
    ...(readThrough > 0 && { readThrough }),
    readElsewhere: elsewhere,
  }));
  if (through === undefined || row.unread === 0) return false;
  const limit = capacity.messages;
  const found = limit > 0 ? await readBatch(tx, key, { through, limit }) : 0;
  capacity.messages -= found;
  if (found === limit) await waitingMarks.put(tx, `${key.kind}/${key.id}`, through);
  return found > 0;
}

/** Returns the place of a marked message on this device; `undefined` if it is not here. */
async function orderOf(
  tx: StoreWriter,
  { id, from, message_id }: ReadMark & { readonly kind: 'person' },
): Promise<number | undefined> {
  const row = from === id ? await messageRow(tx, { from, message_id }) : undefined;
  return row?.order;
}

/** Marks the rest of the messages as read, batch by batch. */
export async function finishMarks({ store }: AccountCore): Promise<void> {
  for (const { key } of await store.read((tx) => waitingMarks.list(tx))) {
    const [kind, id] = key.split('/') as [ConversationKey['kind'], string];
    while (await store.write((tx) => finishBatch(tx, { kind, id })));
  }
}

/** @returns whether there may be more */
async function finishBatch(tx: StoreWriter, key: ConversationKey): Promise<boolean> {
  const rowKey = `${key.kind}/${key.id}`;
  const through = await waitingMarks.get(tx, rowKey);
  if (through === undefined) return false;
  const isKnown = (await conversationRow(tx, key)) !== undefined;
  const found = isKnown ? await readBatch(tx, key, { through }) : 0;
  if (found === readBatchSize) return true;
  await waitingMarks.delete(tx, rowKey);
  await recordEvents(tx, [{ kind: 'conversation-read', conversation: key }]);
  return false;
}
