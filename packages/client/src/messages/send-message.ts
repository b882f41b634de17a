/** Enqueues messages, and waits for the relay's answer (04 §12, §15). */
import { type Authorization, newMessageId } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { atCurrentHome } from '../accounts/home-relay.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { whileKept } from '../sync/outbox.ts';
import { endedElsewhere, notSentYet } from '../sync/write-outcomes.ts';
import { currentRow, firstId, type QueuedMessage, queueMessage } from './message-queue.ts';
import { addMessage, isUnsent, type MessageRow } from './message-rows.ts';
import type { Purpose } from './outbox.ts';
import { recipientsOf } from './recipients.ts';
import { laneOf, sendWaiting } from './send-queue.ts';
import { recordMessageStatus } from './submit.ts';

/** A message to be stored, sealed when it is its turn, and sent. */
export interface OutgoingMessage {
  readonly messageId: string;
  readonly to: string;
  /** The business object, with its `$type`. */
  readonly content: JsonObject;
  readonly authorization?: Authorization | undefined;
  readonly purpose: Purpose;
  /** For a self-delivery: whether this device gets a key box too. */
  readonly includeThisDevice?: boolean;
  /** For a self-delivery: IDs of the only devices that get key boxes. */
  readonly devices?: readonly string[];
}

/** Stores a message at the end of its conversation. */
export async function storeMessage(
  core: AccountCore,
  tx: StoreWriter,
  message: OutgoingMessage,
): Promise<{ readonly row: MessageRow; readonly queued: QueuedMessage }> {
  const { messageId: message_id, to, content, purpose, authorization } = message;
  const { includeThisDevice, devices } = message;
  const queued = await queueMessage(tx, to, {
    message_id,
    purpose,
    ...(authorization !== undefined && { authorization }),
    ...(includeThisDevice !== undefined && { includeThisDevice }),
    ...(devices !== undefined && { devices }),
  });
  const row = await addMessage(core, tx, {
    message_id,
    from: core.account,
    from_device_id: core.device.deviceId,
    to,
    created_at: unixSeconds(core.clock),
    digest: '',
    content,
    outcome: 'applied',
    status: 'waiting',
    queued: queued.key,
  });
  await recordMessageStatus(tx, row, queued.value);
  return { row, queued };
}

/**
 * Sends a queued message after those before it, and waits for the relay's answer.
 *
 * @throws ClientError `no_recipient_device`, `not_a_contact`, `invalid_input`; RelayRefused: it is
 *   given up
 * @throws RelayUnreachable, RelayMisbehaviour with the message stored, to be sent later
 */
export async function sendQueued(
  core: AccountCore,
  { row, queued }: { readonly row: MessageRow; readonly queued: QueuedMessage },
  signal: AbortSignal,
): Promise<MessageRow> {
  const { to } = row;
  const work = sendWaiting(core, to);
  const read = (tx: StoreReader) => currentRow(tx, row);
  const isKept = async (tx: StoreReader) => {
    const latest = await read(tx);
    return latest !== undefined && isUnsent(latest);
  };
  const id = firstId(queued.value);
  await whileKept(core.store, isKept, () =>
    core.sender.untilAnswered(id, { conversation: laneOf(to), work, signal }),
  );
  const latest = await core.store.read(read);
  if (latest === undefined) return row;
  if (isUnsent(latest)) throw notSentYet();
  const { status, error } = latest;
  if (status === 'rejected' && error !== undefined) {
    throw endedElsewhere('message.send', { status, error });
  }
  return latest;
}

/**
 * Sends a consent, or a message that completes tasks. Nothing is stored unless the recipient's
 * devices are known, or could be asked.
 *
 * @throws the same as {@link sendQueued}
 */
export async function sendMessage(
  core: AccountCore,
  {
    signal,
    inTransaction,
    ...message
  }: Omit<OutgoingMessage, 'messageId'> & {
    readonly signal: AbortSignal;
    /** Runs in the transaction that stores the message. */
    readonly inTransaction?: (tx: StoreWriter) => Promise<void>;
  },
): Promise<MessageRow> {
  await atCurrentHome(core, signal, () => recipientsOf(core, message, { refresh: false, signal }));
  const messageId = newMessageId(core.random);
  const stored = await core.store.write(async (tx) => {
    await inTransaction?.(tx);
    return await storeMessage(core, tx, { ...message, messageId });
  });
  return await sendQueued(core, stored, signal);
}
