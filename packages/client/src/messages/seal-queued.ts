/** Seals the message whose turn it is; from then on it is sent unchanged (04 §12, §15.1). */
import {
  type Authorization,
  type DirectMessage,
  ProtocolError,
  type SendRequest,
  sealMessage,
  sha256Text,
} from '@posthouse/protocol';
import { canonicalBytes, type JsonObject } from '@posthouse/protocol/json';
import { atCurrentHome, isWrongHome } from '../accounts/home-relay.ts';
import { leavesMessageOpen } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal, RelayRefused } from '../errors.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { restoredAtOf } from '../sync/reach-relay.ts';
import {
  currentId,
  isQueued,
  messageQueue,
  type QueuedMessage,
  rememberReplaced,
} from './message-queue.ts';
import {
  type MessageRow,
  messageRow,
  removeMessage,
  replaceMessage,
  updateMessage,
} from './message-rows.ts';
import { type OutboxRow, outbox } from './outbox.ts';
import { ownDevices, recipientsOf, requireGrant } from './recipients.ts';
import { recordMessageStatus, undoPurpose } from './submit.ts';

/**
 * Seals a queued message for the recipient's devices of this moment, or again with a new ID after a
 * refusal, and puts it into the outbox.
 *
 * @param replaced the row that the relay refused
 * @returns `undefined` if the message has no place any more
 * @throws RelayUnreachable while the home relay cannot be reached; the message waits
 * @throws ClientError `no_recipient_device`, `not_a_contact`, `invalid_input`; RelayRefused: given up
 */
export async function sealQueued(
  core: AccountCore,
  queued: QueuedMessage,
  { replaced, signal }: { readonly replaced?: OutboxRow; readonly signal: AbortSignal },
): Promise<OutboxRow | undefined> {
  const { message_id } = queued.value;
  const row = await core.store.read((tx) => messageRow(tx, { from: core.account, message_id }));
  if (row?.content === undefined) return await core.store.write((tx) => drop(tx, queued));
  try {
    const restoredAt = await restoredAtOf(core, (await core.home()).relayId, signal);
    const { params, content } = await seal(core, queued, { row, replaced, signal });
    const { relayId } = await core.home();
    const sealed = { ...row, content };
    return await core.store.write((tx) =>
      storeSealed(core, tx, { queued, replaced, params, sealed, relayId, restoredAt }),
    );
  } catch (error) {
    if (isHopeless(error, row.to !== core.account)) {
      await core.store.write((tx) => giveUp(core, tx, { queued, row, error }));
    }
    throw error;
  }
}

async function seal(
  core: AccountCore,
  { value }: QueuedMessage,
  message: {
    readonly row: MessageRow;
    readonly replaced: OutboxRow | undefined;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly params: SendRequest; readonly content: JsonObject }> {
  const { row, replaced, signal } = message;
  const { to } = row;
  const { includeThisDevice, devices } = value;
  const grant = async (tx: StoreReader): Promise<Authorization | undefined> =>
    value.purpose.kind !== 'consent' && to !== core.account
      ? await requireGrant(tx, to)
      : value.authorization;
  const given = await core.store.read(grant);
  const recipients = await atCurrentHome(core, signal, () =>
    recipientsOf(
      core,
      { to, authorization: given, includeThisDevice, devices },
      { refresh: replaced !== undefined, signal },
    ),
  );
  // The grant may have been replaced by one that a device of now has signed.
  const { authorization, content } = await core.store.read(async (tx) => {
    const authorization = await grant(tx);
    const { reply_to: answered } = row.content as Partial<DirectMessage>;
    if (answered?.from !== core.account) return { authorization, content: row.content };
    const message_id = await currentId(tx, answered.message_id);
    return { authorization, content: { ...row.content, reply_to: { ...answered, message_id } } };
  });
  const senders = to === core.account ? [] : await ownDevices(core);
  const createdAt = (await core.home()).relayClock.now();
  const sealed = checkSealed(() =>
    sealMessage(core.network, {
      from: core.device,
      to,
      createdAt,
      content: content as JsonObject,
      recipients,
      senders,
      random: core.random,
      ...(replaced === undefined && { messageId: row.message_id }),
    }),
  );
  return {
    params: { ...sealed, ...(authorization !== undefined && { authorization }) },
    content: content as JsonObject,
  };
}

async function storeSealed(
  core: AccountCore,
  tx: StoreWriter,
  message: {
    readonly queued: QueuedMessage;
    readonly replaced: OutboxRow | undefined;
    readonly params: SendRequest;
    readonly sealed: MessageRow;
    readonly relayId: string;
    readonly restoredAt: number;
  },
): Promise<OutboxRow | undefined> {
  const { queued, replaced, params, sealed, relayId, restoredAt } = message;
  const { key, value } = queued;
  // Cancelled, or sent by another program of this device.
  if (!(await isQueued(tx, queued))) return undefined;
  const known = await outbox.get(tx, value.message_id);
  if (known !== undefined && replaced === undefined) return known;
  const { envelope } = params;
  const { message_id, created_at } = envelope;
  const { first_id = value.message_id } = value;
  const row: OutboxRow = {
    params,
    relayId,
    purpose: value.purpose,
    accepted: false,
    restoredAt,
    place: key,
    ...(replaced !== undefined && { first_id }),
  };
  await outbox.put(tx, message_id, row);
  const { error: _before, ...rest } = sealed;
  const digest = sha256Text(core.network.primitives, canonicalBytes(envelope));
  const stored: MessageRow = { ...rest, message_id, created_at, digest, status: 'sending' };
  if (replaced === undefined) {
    await updateMessage(tx, stored);
    await recordMessageStatus(tx, stored, value);
    return row;
  }
  await outbox.delete(tx, value.message_id);
  await replaceMessage(tx, sealed, stored);
  await rememberReplaced(tx, { replaced: value.message_id, by: message_id });
  await messageQueue.put(tx, key, { ...value, message_id, first_id });
  return row;
}

/** Whether an error proves that this message cannot be sealed, whatever comes later. */
function isHopeless(error: unknown, hasContact: boolean): boolean {
  if (isRefusal(error)) {
    const isAnswer = hasContact && error.method === 'device.state.resolve';
    // A contact's newer grant may be among what was not read yet, or come with a new invite.
    const isOpen = leavesMessageOpen(error) || isWrongHome(error) || isRefusal(error, 'forbidden');
    return isAnswer && !isOpen;
  }
  const codes = ['no_recipient_device', 'not_a_contact', 'invalid_input'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Takes a message out of the queue that no stored content belongs to. */
async function drop(tx: StoreWriter, queued: QueuedMessage): Promise<undefined> {
  if (await isQueued(tx, queued)) await messageQueue.delete(tx, queued.key);
}

/** Stores that a message is not sent: it could not be sealed. */
async function giveUp(
  core: AccountCore,
  tx: StoreWriter,
  given: { readonly queued: QueuedMessage; readonly row: MessageRow; readonly error: unknown },
): Promise<void> {
  const { queued, row, error } = given;
  if (!(await isQueued(tx, queued))) return;
  const { key, value } = queued;
  await messageQueue.delete(tx, key);
  await outbox.delete(tx, value.message_id);
  await undoPurpose(tx, value.purpose, { retry: false });
  if (value.purpose.kind === 'duty') return await removeMessage(core, tx, row);
  const isRefused = error instanceof RelayRefused;
  const { code, message } = error as ClientError;
  const ended: MessageRow = {
    ...row,
    status: isRefused ? 'rejected' : 'failed',
    error: { code: isRefused ? error.error : code, message },
  };
  await updateMessage(tx, ended);
  await recordMessageStatus(tx, ended, value);
}

/** Seals; an error of the protocol becomes `invalid_input`. */
function checkSealed<T>(seal: () => T): T {
  try {
    return seal();
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', cause.message, { cause });
  }
}
