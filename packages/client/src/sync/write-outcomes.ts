/** What became of messages to groups and channels; direct messages have it in their rows. */
import type { AccountCore } from '../core.ts';
import {
  ClientError,
  type ClientErrorCode,
  isClientError,
  isRefusal,
  RelayRefused,
  RelayUnreachable,
  withKept,
} from '../errors.ts';
import type { MessageStatusEvent } from '../events.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';
import { recordStatus } from './message-status.ts';
import { NewestRows } from './newest-rows.ts';
import { type Pending, whileKept } from './outbox.ts';
import type { SendWork } from './sender.ts';
import { keepEnded, type WriteOutcome } from './written-messages.ts';

/** How many are kept: `settled` knows the others no more. */
const capacity = 10_000;

/** By conversation and message ID: the one given at first, and the last one. */
const outcomes = new NewestRows<WriteOutcome>('write-outcomes', capacity);

/** Stores how a message ended, under each of its IDs, and records the event. */
export async function storeOutcome(
  tx: StoreWriter,
  conversation: MessageStatusEvent['conversation'],
  {
    ids,
    pending,
    ...outcome
  }: WriteOutcome & { readonly ids: readonly string[]; readonly pending?: Pending<object> },
): Promise<void> {
  await keepEnded(tx, conversation.id, { ...outcome, ...pending, firstId: ids[0] as string });
  for (const id of new Set([...ids, outcome.messageId])) {
    await outcomes.put(tx, keyOf(conversation.id, id), outcome);
  }
  const { status, error, messageId } = outcome;
  await recordStatus(tx, {
    conversation,
    messageId: ids[0] ?? messageId,
    status,
    ...(error !== undefined && { error }),
  });
}

/** Reads how a message ended; `undefined` while it waits, or if it is not known. */
export async function outcomeOf(
  tx: StoreReader,
  conversationId: string,
  messageId: string,
): Promise<WriteOutcome | undefined> {
  return await outcomes.get(tx, keyOf(conversationId, messageId));
}

/** Describes an error as the end of a message: refused by the host, or failed here. */
export function endedBy(error: unknown): Pick<WriteOutcome, 'status' | 'error'> {
  const { message } = error as Error;
  if (isRefusal(error)) return { status: 'rejected', error: { code: error.error, message } };
  const code = error instanceof ClientError ? error.code : 'failed';
  return { status: 'failed', error: { code, message } };
}

/** A group or channel, and how what waits for it is sent. */
export interface Outgoing {
  readonly id: string;
  readonly lane: string;
  readonly work: SendWork;
}

/**
 * Waits until a stored message has an answer.
 *
 * @param id the ID that it had when it was written
 * @throws the error that ended the message; RelayUnreachable with `kept` and others while it waits
 */
export async function untilEnded(
  { sender, store }: AccountCore,
  { id: conversationId, lane, work }: Outgoing,
  { id, signal }: { readonly id: string; readonly signal: AbortSignal },
): Promise<WriteOutcome> {
  const read = (tx: StoreReader) => outcomeOf(tx, conversationId, id);
  const isKept = async (tx: StoreReader) => (await read(tx)) === undefined;
  await whileKept(store, isKept, () =>
    sender.untilAnswered(id, { conversation: lane, work, signal }),
  );
  const outcome = await store.read(read);
  if (outcome !== undefined) return outcome;
  throw notSentYet();
}

/** The error of a message that waits although its run has ended. */
export function notSentYet(): RelayUnreachable {
  return new RelayUnreachable('not sent yet', { outcomeUnknown: true, kept: true });
}

/**
 * Waits until a message has an answer, whatever it is.
 *
 * @param find returns the ID that a waiting message had when it was written
 * @throws ClientError `invalid_input` for an unknown message; what leaves it without an answer
 */
export async function settledOutcome(
  core: AccountCore,
  to: Outgoing,
  {
    messageId,
    find,
    signal,
  }: {
    readonly messageId: string;
    readonly find: (tx: StoreReader) => Promise<string | undefined>;
    readonly signal: AbortSignal;
  },
): Promise<WriteOutcome> {
  const known = () => core.store.read((tx) => outcomeOf(tx, to.id, messageId));
  const outcome = await known();
  if (outcome !== undefined) return outcome;
  const id = await core.store.read(find);
  if (id === undefined) throw unknownMessage();
  try {
    return await untilEnded(core, to, { id, signal });
  } catch (error) {
    signal.throwIfAborted();
    const ended = isClientError(error) ? await known() : undefined;
    if (ended === undefined) throw error;
    return ended;
  }
}

/**
 * Returns the host's answer to a sent message.
 * @throws ClientError `cancelled`; what ended it in another program of this device
 */
export function sentSequence(method: string, { status, sequence, error }: WriteOutcome): number {
  if (status === 'target_accepted' && sequence !== undefined) return sequence;
  if (error !== undefined) throw endedElsewhere(method, { status, error });
  throw new ClientError('cancelled', 'the message was cancelled before it was sent');
}

/** The error that ended a message in another program of this device, by what is stored of it. */
export function endedElsewhere(
  method: string,
  {
    status,
    error,
  }: { readonly status: string; readonly error: NonNullable<WriteOutcome['error']> },
): ClientError {
  const { code, message } = error;
  const ended =
    status === 'rejected'
      ? new RelayRefused(method, code, { message })
      : new ClientError(code as ClientErrorCode, message);
  return withKept(ended, false);
}

/**
 * Ends a message that failed or was rejected as cancelled, so that it is not listed any more.
 * @throws ClientError `already_sent` for one that was accepted
 */
export async function dismissOutcome(
  tx: StoreWriter,
  conversation: MessageStatusEvent['conversation'],
  { status, messageId, id }: WriteOutcome & { readonly id: string },
): Promise<WriteOutcome> {
  if (status === 'target_accepted') throw alreadySent();
  const outcome = { messageId, status: 'cancelled' } as const;
  if (status !== 'cancelled') await storeOutcome(tx, conversation, { ...outcome, ids: [id] });
  return outcome;
}

/** The error of a message that cannot be cancelled any more. */
export function alreadySent(): ClientError {
  return new ClientError('already_sent', 'the message is sent already: it cannot be cancelled');
}

/** The error of a message that this device does not know. */
export function unknownMessage(): ClientError {
  return new ClientError('invalid_input', 'no such message was written on this device');
}
