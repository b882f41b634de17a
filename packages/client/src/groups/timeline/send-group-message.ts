/**
 * Sends messages to groups: sealed for the current epoch, enqueued, sent unchanged (05 §13.28,
 * §14.1).
 */
import {
  checkGroupContent,
  type GroupMessageEnvelope,
  sealGroupMessage,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { isTemporary } from '../../connect/backoff.ts';
import { checkReferences } from '../../content/check-references.ts';
import type { AccountCore } from '../../core.ts';
import {
  ClientError,
  checkInput,
  isClientError,
  isRefusal,
  RelayUnreachable,
} from '../../errors.ts';
import { recordEvents } from '../../events/event-log.ts';
import type { GroupAccountEvent } from '../../events.ts';
import { enqueue, pendingOf, whileSending } from '../../sync/outbox.ts';
import { runToEnd } from '../../sync/run-to-end.ts';
import { groupRow } from '../group-rows.ts';
import { epochSecret, secretBytes } from '../keys/key-rows.ts';
import { dequeueMessage, groupOutbox, isStillPending, type PendingMessage } from '../outbox.ts';
import { sequenceOfMessage } from './group-entries.ts';
import { refreshGroup, requireGroupRow } from './read-group.ts';

const method = 'group.message.send';

/** A message that the host accepted. The sequence is the host's claim until it is read. */
export interface SentToGroup {
  readonly groupId: string;
  readonly messageId: string;
  readonly sequence: number;
}

/** Limit of epochs for which one message is sealed. */
const attempts = 5;

/**
 * Sends content to a group, after messages that are pending already. If its epoch is over, the
 * group is read and the message sealed again with a new ID. If an answer is lost or the host is
 * unreachable, the message stays in the outbox and the next `sync` sends it.
 *
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `group_behind`,
 *   `group_key_missing`, `invalid_input`, `no_relay`
 * @throws RelayRefused; RelayUnreachable with the message in the outbox, once the group was read
 */
export async function sendToGroup(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<SentToGroup> {
  checkInput('group message', () => checkGroupContent(core.network, content));
  await checkReferences('group message', content as Parameters<typeof checkReferences>[1]);
  const known = await core.store.read((tx) => groupRow(tx, groupId));
  if (known?.standing !== 'member') await refreshGroup(core, groupId, signal);
  const envelope = await sealFor(core, { groupId, content }, signal);
  // Enqueued before the request leaves.
  const value = { envelope, content };
  const key = await core.store.write((tx) => enqueue(tx, groupOutbox, { id: groupId, value }));
  return await whileSending(core, key, async () => {
    try {
      await runToEnd(core, flushGroup(core, groupId, signal));
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

/** Whether an error proves that the message will never be delivered. */
function isUndeliverable(error: unknown): boolean {
  if (isRefusal(error)) return !isTemporary(error);
  const codes = ['not_a_member', 'not_permitted', 'invalid_input', 'no_relay'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Whether the message cannot be sealed now; a pending one waits, a new one fails. */
function isBlocked(error: unknown): boolean {
  const codes = ['group_blocked', 'group_behind', 'group_key_missing'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Seals a message for the current epoch. */
async function sealFor(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<GroupMessageEnvelope> {
  const { relay_id, facts } = await requireGroupRow(core, groupId);
  if (facts.status === 'closed') {
    throw new ClientError('not_permitted', 'the group is closed: nothing can be sent to it');
  }
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
  throw new ClientError(
    'group_key_missing',
    `no verified secret of epoch ${epoch} is stored here: synchronize, or ask for a new key`,
  );
}

/**
 * Submits a pending message until the host accepts it, sealed again if its epoch is over. If
 * several programs do so at once, the first change of the row wins.
 *
 * @returns its position; `undefined` if another program sent it with an ID not known here
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
      // Only a refusal proves that the message was not accepted.
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
  return { groupId: group_id, messageId: message_id, sequence: answer.sequence };
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

/** Seals the message again with a new message ID (05 §13.28), and replaces the envelope. */
async function sealAnew(
  core: AccountCore,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<void> {
  // Reading the group may have returned it: it was accepted, only the answer was lost.
  if (!(await core.store.read((tx) => isStillPending(tx, pending)))) return;
  const { content, envelope } = pending.value;
  const next = await sealFor(core, { groupId: envelope.group_id, content }, signal);
  await core.store.write(async (tx) => {
    if (!(await isStillPending(tx, pending))) return;
    await groupOutbox.put(tx, pending.key, { envelope: next, content });
  });
}

/** Finds the position of a message that is not pending any more, by the IDs it had. */
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
      if (sequence !== undefined) return { groupId, messageId: message_id, sequence };
    }
    return undefined;
  });
}

/**
 * Sends a group's pending messages, or gives them up if the account cannot send to it any more.
 * @returns whether a message was sent, so that the group should be read again
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
 * Sends pending messages in the order of writing. A message that can never be delivered gives an
 * event; a message that cannot be sealed now stays pending, with all later ones.
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

/** Lists pending messages without those that a caller is sending right now. */
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
    const event = { kind: 'group-message-unsent', groupId: group_id, messageId, reason } as const;
    await recordEvents(tx, [event]);
    return [event];
  });
}
