/** Posting, awaiting and cancelling direct messages (04 §12, §15). */
import { type DirectMessage, limits, newMessageId, utf8 } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { checkReferences } from '../content/check-references.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';
import { markPosted, type NamedDraft } from '../sync/draft-outcomes.ts';
import { alreadySent, unknownMessage } from '../sync/write-outcomes.ts';
import {
  currentRow,
  ensureAdopted,
  messageQueue,
  placeOf,
  type QueuedMessage,
} from './message-queue.ts';
import { isShown, isUnsent, type MessageRow, updateMessage } from './message-rows.ts';
import { outbox } from './outbox.ts';
import { requireGrant } from './recipients.ts';
import { sendQueued, storeMessage } from './send-message.ts';
import { recordMessageStatus } from './submit.ts';

interface RowKey {
  readonly from: string;
  readonly message_id: string;
}

/**
 * Stores a direct message at the end of its conversation, in the order of the calls.
 * @throws ClientError `not_a_contact`, `invalid_input`
 */
export async function postMessage(
  core: AccountCore,
  to: string,
  content: JsonObject & DirectMessage,
  named: NamedDraft = {},
): Promise<{ readonly row: MessageRow; readonly queued: QueuedMessage }> {
  return await core.sender.writing.run(async () => {
    // Sealing adds more; the exact size is known only then.
    if (utf8(canonicalJson(content)).length * (4 / 3) > limits.envelopeBytes) {
      throw new ClientError('invalid_input', `message: over ${limits.envelopeBytes} bytes`);
    }
    await checkReferences('message', content);
    return await core.store.write(async (tx) => {
      if (to !== core.account) await requireGrant(tx, to);
      await markPosted(tx, named);
      const messageId = newMessageId(core.random);
      return await storeMessage(core, tx, { messageId, to, content, purpose: { kind: 'direct' } });
    });
  });
}

/** Sends a message until it has an answer. @throws what leaves it without one */
export async function settledMessage(
  core: AccountCore,
  key: RowKey,
  signal: AbortSignal,
): Promise<MessageRow> {
  await ensureAdopted(core.store);
  const { row, queued } = await core.store.read(async (tx) => {
    const found = await requireOwn(tx, key);
    return { row: found, queued: await placeOf(tx, found) };
  });
  if (queued === undefined) return row;
  try {
    return await sendQueued(core, { row, queued }, signal);
  } catch (error) {
    signal.throwIfAborted();
    const latest = await core.store.read((tx) => currentRow(tx, key));
    if (latest === undefined || isUnsent(latest) || !isClientError(error)) throw error;
    return latest;
  }
}

/**
 * Cancels a message that is not sealed, or one that failed or was rejected.
 * @throws ClientError `already_sent`, `invalid_input`
 */
export async function cancelMessage(core: AccountCore, key: RowKey): Promise<MessageRow> {
  const { row, first } = await core.store.write(async (tx) => {
    const found = await requireOwn(tx, key);
    if (found.status === 'cancelled') return { row: found };
    const cancelled: MessageRow = { ...found, status: 'cancelled' };
    const queued = await placeOf(tx, found);
    const isSealed = (await outbox.get(tx, found.message_id)) !== undefined;
    const hasFailed = found.status === 'rejected' || found.status === 'failed';
    if (queued?.value.purpose.kind === 'direct' && !isSealed) {
      await messageQueue.delete(tx, queued.key);
    } else if (!hasFailed || !isShown(found)) {
      throw alreadySent();
    }
    await updateMessage(tx, cancelled);
    await recordMessageStatus(tx, cancelled, queued?.value ?? { purpose: { kind: 'direct' } });
    return { row: cancelled, first: found.message_id };
  });
  if (first !== undefined) core.sender.answered(first);
  return row;
}

async function requireOwn(tx: StoreReader, key: RowKey): Promise<MessageRow> {
  const row = await currentRow(tx, key);
  if (row?.status !== undefined) return row;
  throw unknownMessage();
}
