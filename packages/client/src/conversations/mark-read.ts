/** Marks messages as read, and has the other own devices told (decision 0039). */
import type { AccountCore } from '../core.ts';
import { noteReadChange } from '../own-devices/change-rows.ts';
import type { StoreWriter } from '../store/index.ts';
import { buildConversations } from './build-conversations.ts';
import {
  type ConversationKey,
  changeConversation,
  conversationRow,
  readBatch,
  readBatchSize,
} from './conversation-rows.ts';
import { checkWhole } from './list-options.ts';

/**
 * Marks the messages of a conversation as read, through a position; by default, through the last
 * message that is stored now. Does nothing for a conversation that is not known.
 *
 * @throws ClientError `invalid_input`
 */
export async function markRead(
  core: AccountCore,
  key: ConversationKey,
  given: number | undefined,
): Promise<void> {
  if (given !== undefined) checkWhole('through', given, 0);
  await buildConversations(core);
  const row = await core.store.read((tx) => conversationRow(tx, key));
  if (row === undefined) return;
  const last = Number.parseInt(row.last ?? '0', 10);
  const through = given ?? last;
  // A mark beyond the end would hide what arrives later.
  const mark = { through, readThrough: Math.min(through, last) };
  while (await core.store.write((tx) => markBatch(tx, key, mark)));
}

/** @returns whether there may be more */
async function markBatch(
  tx: StoreWriter,
  key: ConversationKey,
  { through, readThrough }: { readonly through: number; readonly readThrough: number },
): Promise<boolean> {
  const known = await conversationRow(tx, key);
  if (known === undefined) return false;
  const found = await readBatch(tx, key, { through });
  await changeConversation(tx, key, (row) => ({
    ...row,
    readThrough: Math.max(row.readThrough ?? 0, readThrough),
  }));
  if (found > 0 || readThrough > (known.readThrough ?? 0)) await noteReadChange(tx, key);
  return found === readBatchSize;
}
