/** Sending to groups: sealed for the present epoch, kept, and sent unchanged (05 §13.28, §14.1). */
import {
  checkGroupContent,
  type JsonObject,
  ProtocolError,
  sealGroupMessage,
} from '@posthouse/protocol';
import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { keyOf } from '../store/keys.ts';
import { type GroupOutboxRow, groupOutbox } from './candidates.ts';
import { secretBytes } from './open.ts';
import { epochSecret, groupRow } from './rows.ts';
import { readGroup, refreshGroup, requireRow } from './sync.ts';

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
 * Sends content to a group. Where its epoch is over, the group is read and the message sealed anew
 * under a new ID. Where an answer was lost the message is kept and goes out again, unchanged.
 *
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `group_key_missing`,
 *   `invalid_input`
 * @throws RelayRefused; RelayUnreachable with the message kept
 */
export async function sendToGroup(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<SentToGroup> {
  checkContent(core, content);
  const known = await core.store.read((tx) => groupRow(tx, groupId));
  if (known?.standing !== 'member') await refreshGroup(core, groupId, signal);
  for (let attempt = 1; ; attempt += 1) {
    const row = await postMessage(core, { groupId, content }, signal);
    try {
      return await submit(core, row, signal);
    } catch (error) {
      // Only a refusal says that the message was not taken.
      if (!isRefusal(error) || isTemporary(error)) throw error;
      await forget(core, row);
      const isAgain = isRefusal(error, 'state_conflict', 'clock_skew') && attempt < attempts;
      if (!isAgain) throw error;
      await prepareRetry(core, { groupId, error }, signal);
    }
  }
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

/** Seals a message for the present epoch and keeps it, before anything of it leaves. */
async function postMessage(
  core: AccountCore,
  { groupId, content }: { readonly groupId: string; readonly content: JsonObject },
  signal: AbortSignal,
): Promise<GroupOutboxRow> {
  const { relay_id, facts } = await requireRow(core, groupId);
  if (facts.status === 'closed') throw new ClientError('not_permitted', 'the group is closed');
  const { epoch } = facts;
  const applicationSecret = await verifiedSecret(core, { groupId, epoch }, signal);
  const relay = core.relay(relay_id);
  await relay.link(signal);
  const message = {
    group_id: groupId,
    from: core.device,
    epoch,
    applicationSecret,
    createdAt: relay.relayClock.now(),
    content,
    random: core.random,
  };
  const kept = { envelope: sealed(() => sealGroupMessage(core.network, message)), content };
  const key = keyOf(groupId, kept.envelope.message_id);
  await core.store.write((tx) => groupOutbox.put(tx, key, kept));
  return kept;
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

/** @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
async function submit(
  core: AccountCore,
  { envelope }: GroupOutboxRow,
  signal: AbortSignal,
): Promise<SentToGroup> {
  const { group_id, message_id } = envelope;
  const row = await core.store.read((tx) => groupRow(tx, group_id));
  if (row === undefined) throw new ClientError('not_a_member', `${group_id} is not known here`);
  const answer = await core.relay(row.relay_id).call(method, envelope, { signal });
  await core.store.write((tx) => groupOutbox.delete(tx, keyOf(group_id, message_id)));
  return { group_id, message_id, sequence: answer.sequence };
}

async function forget(core: AccountCore, { envelope }: GroupOutboxRow): Promise<void> {
  const key = keyOf(envelope.group_id, envelope.message_id);
  await core.store.write((tx) => groupOutbox.delete(tx, key));
}

/**
 * Sends again what has no answer yet. After a conflict the group is read: either the message is in
 * it, or it was not taken and is sealed anew, or the group is closed.
 */
export async function* flushGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const rows = await core.store.read((tx) => groupOutbox.list(tx, { prefix: `${groupId}/` }));
  for (const { key, value: row } of rows) {
    try {
      await submit(core, row, signal);
    } catch (error) {
      if (!isRefusal(error) || isTemporary(error)) throw error;
      yield* readGroup(core, groupId, signal);
      const isOpen = await core.store.read((tx) => groupOutbox.get(tx, key));
      if (isOpen === undefined) continue;
      await forget(core, row);
      const reason = await sendAnew(core, { row, error }, signal);
      if (reason === undefined) continue;
      const { message_id } = row.envelope;
      yield [{ kind: 'group-unsent', group_id: groupId, message_id, reason }];
    }
  }
}

/** @returns why the message cannot be sent any more */
async function sendAnew(
  core: AccountCore,
  { row, error }: { readonly row: GroupOutboxRow; readonly error: unknown },
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!isRefusal(error, 'state_conflict', 'clock_skew')) return (error as Error).message;
  const { group_id: groupId } = row.envelope;
  try {
    await sendToGroup(core, { groupId, content: row.content }, signal);
    return undefined;
  } catch (cause) {
    if (!isClientError(cause) || isTemporary(cause)) throw cause;
    return cause.message;
  }
}

function checkContent(core: AccountCore, content: JsonObject): void {
  sealed(() => checkGroupContent(core.network, content));
}

/** What breaks the rules of a message was not fit to be sent. */
function sealed<T>(seal: () => T): T {
  try {
    return seal();
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', `group message: ${cause.message}`, { cause });
  }
}
