/** Seals the message of a group whose turn it is, for the current epoch (05 §13.28, §14.1). */
import { type GroupMessageEnvelope, sealGroupMessage } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../../core.ts';
import { ClientError, checkInput } from '../../errors.ts';
import { recordStatus } from '../../sync/message-status.ts';
import { reachRelay, restoredAtOf } from '../../sync/reach-relay.ts';
import { groupRow } from '../group-rows.ts';
import { epochSecret, secretBytes } from '../keys/key-rows.ts';
import {
  firstIdOf,
  groupOutbox,
  isStillPending,
  messageIdOf,
  type PendingMessage,
} from '../outbox.ts';
import { refreshGroup, requireGroupRow } from './read-group.ts';

/**
 * Seals a waiting message under its ID, once the host is connected. Does nothing if it does not wait
 * any more.
 *
 * @returns whether it was sealed, so that no request with it was made before
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `group_behind`,
 *   `group_key_missing`, `invalid_input`, `no_relay`; RelayUnreachable while the message waits
 */
export async function sealWaiting(
  core: AccountCore,
  groupId: string,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<boolean> {
  const known = await core.store.read((tx) => groupRow(tx, groupId));
  if (known?.standing !== 'member') await refreshGroup(core, groupId, signal);
  if (known !== undefined) await reachRelay(core, core.relay(known.relay_id), signal);
  const { content } = pending.value;
  const messageId = messageIdOf(pending.value);
  const envelope = await sealFor(core, { groupId, content, messageId }, signal);
  return await putEnvelope(core, { groupId, pending, envelope }, signal);
}

/**
 * Seals a refused message again, with a new ID (05 §13.28), and replaces the envelope.
 * @returns as {@link sealWaiting}
 */
export async function sealAnew(
  core: AccountCore,
  groupId: string,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<boolean> {
  // Reading the group may have returned it: it was accepted, only the answer was lost.
  if (!(await core.store.read((tx) => isStillPending(tx, pending)))) return false;
  const { content } = pending.value;
  const envelope = await sealFor(core, { groupId, content }, signal);
  return await putEnvelope(core, { groupId, pending, envelope }, signal);
}

async function putEnvelope(
  core: AccountCore,
  sealed: {
    readonly groupId: string;
    readonly pending: PendingMessage;
    readonly envelope: GroupMessageEnvelope;
  },
  signal: AbortSignal,
): Promise<boolean> {
  const { groupId, pending, envelope } = sealed;
  const { key, value } = pending;
  const { relay_id } = await requireGroupRow(core, groupId);
  const restoredAt = await restoredAtOf(core, relay_id, signal);
  return await core.store.write(async (tx) => {
    if (!(await isStillPending(tx, pending))) return false;
    const first_id = firstIdOf(value);
    const { message_id } = envelope;
    await groupOutbox.put(tx, key, { ...value, message_id, first_id, envelope, restoredAt });
    if (value.envelope !== undefined) return true;
    const conversation = { kind: 'group', id: groupId } as const;
    await recordStatus(tx, { conversation, messageId: first_id, status: 'sending' });
    return true;
  });
}

/** Seals a message for the current epoch. */
async function sealFor(
  core: AccountCore,
  message: {
    readonly groupId: string;
    readonly content: JsonObject;
    /** A new one by default. */
    readonly messageId?: string;
  },
  signal: AbortSignal,
): Promise<GroupMessageEnvelope> {
  const { groupId, content, messageId } = message;
  const { relay_id, facts } = await requireGroupRow(core, groupId);
  if (facts.status === 'closed') {
    throw new ClientError('not_permitted', 'the group is closed: nothing can be sent to it');
  }
  const { epoch } = facts;
  const applicationSecret = await verifiedSecret(core, { groupId, epoch }, signal);
  const input = {
    group_id: groupId,
    from: core.device,
    epoch,
    applicationSecret,
    createdAt: core.relay(relay_id).relayClock.now(),
    content,
    random: core.random,
    ...(messageId !== undefined && { messageId }),
  };
  return checkInput('group message', () => sealGroupMessage(core.network, input));
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
