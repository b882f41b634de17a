/** Sending to groups: sealed for the present epoch, kept, and sent unchanged (05 §13.28, §14.1). */
import {
  checkGroupContent,
  type GroupMessageEnvelope,
  sealGroupMessage,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { isTemporary } from '../../connect/backoff.ts';
import type { AccountCore } from '../../core.ts';
import {
  ClientError,
  checkInput,
  isClientError,
  isRefusal,
  RelayUnreachable,
} from '../../errors.ts';
import type { GroupAccountEvent } from '../../events.ts';
import { bufferEvents } from '../../sync/collect-events.ts';
import { enqueue, pendingOf, whileSending } from '../../sync/outbox.ts';
import { groupRow } from '../group-rows.ts';
import { epochSecret, secretBytes } from '../keys/key-rows.ts';
import { dequeueMessage, groupOutbox, isStillPending, type PendingMessage } from '../outbox.ts';
import { sequenceOfMessage } from './group-entries.ts';
import { refreshGroup, requireGroupRow } from './read-group.ts';

const method = 'group.message.send';

/** A message the host took. Its place is the host's word until it is read. */
export interface SentToGroup {
  readonly group_id: string;
  readonly message_id: string;
  readonly sequence: number;
}

/** Epochs a message is sealed for, while the group moves on. */
const attempts = 5;

/**
 * Sends content to a group, behind what waits from before. Where its epoch is over, the group is
 * read and the message sealed anew under a new ID. Where an answer is lost, or the host cannot be
 * reached, the message is kept and goes out with the next synchronization.
 *
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `group_behind`,
 *   `group_key_missing`, `invalid_input`, `no_relay`
 * @throws RelayRefused; RelayUnreachable with the message kept, once the group was read
 */
export async function sendToGroup(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<SentToGroup> {
  checkInput('group message', () => checkGroupContent(core.network, content));
  const known = await core.store.read((tx) => groupRow(tx, groupId));
  if (known?.standing !== 'member') await refreshGroup(core, groupId, signal);
  const envelope = await sealFor(core, { groupId, content }, signal);
  // Kept before anything of it leaves.
  const value = { envelope, content };
  const key = await core.store.write((tx) => enqueue(tx, groupOutbox, { id: groupId, value }));
  return await whileSending(core, key, async () => {
    try {
      await bufferEvents(core, flushGroup(core, groupId, signal));
      const sent = await deliver(core, { groupId, key }, signal);
      if (sent !== undefined) return sent;
      throw new RelayUnreachable('another program of this device has sent the message', {
        outcomeUnknown: true,
      });
    } catch (error) {
      if (isUndeliverable(error) || isBlocked(error))
        await core.store.write((tx) => groupOutbox.delete(tx, key));
      throw error;
    }
  });
}

/** Whether a message cannot be sent any more; everything else leaves its fate open. */
function isUndeliverable(error: unknown): boolean {
  if (isRefusal(error)) return !isTemporary(error);
  const codes = ['not_a_member', 'not_permitted', 'invalid_input', 'no_relay'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Whether it cannot be sealed for now: a member waits for that, a caller is told. */
function isBlocked(error: unknown): boolean {
  const codes = ['group_blocked', 'group_behind', 'group_key_missing'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Seals a message for the present epoch. */
async function sealFor(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<GroupMessageEnvelope> {
  const { relay_id, facts } = await requireGroupRow(core, groupId);
  if (facts.status === 'closed') throw new ClientError('not_permitted', 'the group is closed');
  const { epoch } = facts;
  const applicationSecret = await verifiedSecret(core, { groupId, epoch }, signal);
  const message = {
    group_id: groupId,
    from: core.device,
    epoch,
    applicationSecret,
    createdAt: core.relay(relay_id).relayClock.now(),
    content,
    random: core.random,
  };
  return checkInput('group message', () => sealGroupMessage(core.network, message));
}

/** @throws ClientError `group_key_missing` */
async function verifiedSecret(
  core: AccountCore,
  { groupId, epoch }: { readonly groupId: string; readonly epoch: number },
  signal: AbortSignal,
): Promise<Uint8Array> {
  const find = () => core.store.read((tx) => epochSecret(tx, groupId, epoch));
  let found = await find();
  if (found?.isVerified !== true) {
    await refreshGroup(core, groupId, signal);
    found = await find();
  }
  if (found?.isVerified === true) return secretBytes(found.secret);
  throw new ClientError('group_key_missing', `no verified secret of epoch ${epoch} is here`);
}

/**
 * Submits what waits at a place until the host takes it, sealed anew for the epoch that is there by
 * then. Several programs may do so at once: whoever changes the row first decides for all.
 *
 * @returns its place; `undefined` where another program has sent it under an ID not known here
 */
async function deliver(
  core: AccountCore,
  { groupId, key }: { readonly groupId: string; readonly key: string },
  signal: AbortSignal,
): Promise<SentToGroup | undefined> {
  const ids: string[] = [];
  for (let attempt = 1; ; attempt += 1) {
    const value = await core.store.read((tx) => groupOutbox.get(tx, key));
    if (value === undefined) return await sentByOthers(core, groupId, ids);
    ids.push(value.envelope.message_id);
    try {
      return await submit(core, { key, value }, signal);
    } catch (error) {
      // Only a refusal says that the message was not taken.
      const isAgain = isRefusal(error, 'state_conflict', 'clock_skew') && attempt < attempts;
      if (!isAgain) throw error;
      await prepareRetry(core, { groupId, error }, signal);
      await sealAnew(core, { key, value }, signal);
    }
  }
}

/** @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
async function submit(
  core: AccountCore,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<SentToGroup> {
  const { envelope } = pending.value;
  const { group_id, message_id } = envelope;
  const row = await core.store.read((tx) => groupRow(tx, group_id));
  if (row === undefined) throw new ClientError('not_a_member', `${group_id} is not known here`);
  const answer = await core.relay(row.relay_id).call(method, envelope, { signal });
  await core.store.write((tx) => dequeueMessage(tx, pending));
  return { group_id, message_id, sequence: answer.sequence };
}

async function prepareRetry(
  core: AccountCore,
  { groupId, error }: { readonly groupId: string; readonly error: unknown },
  signal: AbortSignal,
): Promise<void> {
  const row = await core.store.read((tx) => groupRow(tx, groupId));
  if (isRefusal(error, 'clock_skew') && row !== undefined) {
    core.relay(row.relay_id).relayClock.adopt();
  } else await refreshGroup(core, groupId, signal);
}

/** Encrypting again takes a new message ID (05 §13.28); the old envelope is kept until then. */
async function sealAnew(
  core: AccountCore,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<void> {
  // Reading the group may have shown it: it was taken, and only the answer was lost.
  if (!(await core.store.read((tx) => isStillPending(tx, pending)))) return;
  const { content, envelope } = pending.value;
  const next = await sealFor(core, { groupId: envelope.group_id, content }, signal);
  await core.store.write(async (tx) => {
    if (!(await isStillPending(tx, pending))) return;
    await groupOutbox.put(tx, pending.key, { envelope: next, content });
  });
}

/** The place of a message that waits no more, by the IDs it had. */
async function sentByOthers(
  core: AccountCore,
  groupId: string,
  ids: readonly string[],
): Promise<SentToGroup | undefined> {
  return await core.store.read(async (tx) => {
    for (const message_id of ids) {
      const sequence = await sequenceOfMessage(tx, {
        group_id: groupId,
        from: core.account,
        message_id,
      });
      if (sequence !== undefined) return { group_id: groupId, message_id, sequence };
    }
    return undefined;
  });
}

/**
 * Sends what waits for a group, or tells that the group takes no messages of this account.
 * @returns whether something was sent, which is to be read by now
 */
export async function* flushOrGiveUp(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): AsyncGenerator<readonly GroupAccountEvent[], boolean> {
  const row = await core.store.read((tx) => groupRow(tx, groupId));
  if (row?.standing === 'ended') {
    yield* giveUpAll(core, groupId, 'the account is no member any more');
  } else if (row?.facts?.status === 'closed') {
    yield* giveUpAll(core, groupId, 'the group is closed');
  } else if (row?.standing === 'member') {
    return yield* flushGroup(core, groupId, signal);
  }
  return false;
}

/**
 * Sends again what has no answer yet, in the order in which it was written. What cannot be sent any
 * more is told; what cannot be sealed for now goes on waiting, and all behind it.
 */
async function* flushGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): AsyncGenerator<readonly GroupAccountEvent[], boolean> {
  let hasSent = false;
  for (const { key } of await flushable(core, groupId)) {
    try {
      await deliver(core, { groupId, key }, signal);
      hasSent = true;
    } catch (error) {
      if (isBlocked(error)) break;
      if (!isUndeliverable(error)) throw error;
      yield await giveUp(core, key, (error as Error).message);
    }
  }
  return hasSent;
}

async function* giveUpAll(
  core: AccountCore,
  groupId: string,
  reason: string,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  for (const { key } of await flushable(core, groupId)) yield await giveUp(core, key, reason);
}

/** What waits, but for what a caller is sending right now and will be told of. */
async function flushable(core: AccountCore, groupId: string): Promise<PendingMessage[]> {
  const rows = await core.store.read((tx) => pendingOf(tx, groupOutbox, groupId));
  return rows.filter(({ key }) => !core.sending.has(key));
}

async function giveUp(
  core: AccountCore,
  key: string,
  reason: string,
): Promise<readonly GroupAccountEvent[]> {
  return await core.store.write(async (tx) => {
    const row = await groupOutbox.get(tx, key);
    if (row === undefined) return [];
    await groupOutbox.delete(tx, key);
    const { group_id, message_id: messageId } = row.envelope;
    return [{ kind: 'group-message-unsent', groupId: group_id, messageId, reason }];
  });
}
