/**
 * Sends messages to groups: in the order of writing, sealed for the epoch of their turn, sent
 * unchanged (05 §13.28, §14.1).
 */
import { leavesOpen } from '../../connect/backoff.ts';
import { untilAborted } from '../../connect/deadline.ts';
import type { AccountCore } from '../../core.ts';
import { ClientError, isClientError, isRefusal } from '../../errors.ts';
import type { StoreReader } from '../../store/index.ts';
import { type Pending, pendingOf } from '../../sync/outbox.ts';
import type { SendWork } from '../../sync/sender.ts';
import { endedBy } from '../../sync/write-outcomes.ts';
import { groupRow } from '../group-rows.ts';
import {
  endMessage,
  firstIdOf,
  type GroupOutboxRow,
  groupOutbox,
  isStillPending,
  type PendingMessage,
} from '../outbox.ts';
import { refreshGroup } from './read-group.ts';
import { sealAnew, sealWaiting } from './seal-group-message.ts';

const method = 'group.message.send';

/** Limit of epochs for which one message is sealed in one run. */
const attempts = 5;

/** Returns the name of a group's run. */
export function groupLane(groupId: string): string {
  return `group/${groupId}`;
}

/**
 * Returns the work that sends what waits for a group, oldest first. A message that can never be
 * delivered is given up, and the next one goes on; any other failure ends the run.
 */
export function sendWaitingToGroup(core: AccountCore, groupId: string): SendWork {
  return async (signal) => {
    for (;;) {
      signal.throwIfAborted();
      const head = await core.store.read((tx) => headOf(tx, groupId));
      if (head === undefined) return;
      let failure: unknown;
      try {
        await deliver(core, { groupId, key: head.key }, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!isUndeliverable(error)) throw error;
        await giveUp(core, groupId, { pending: head, error });
        failure = error;
      }
      core.sender.answered(firstIdOf(head.value), failure);
    }
  };
}

async function headOf(
  tx: StoreReader,
  groupId: string,
): Promise<Pending<GroupOutboxRow> | undefined> {
  const [head] = await groupOutbox.list(tx, { prefix: `${groupId}/`, limit: 1 });
  return head;
}

/** Whether an error proves that the message will never be delivered. */
function isUndeliverable(error: unknown): boolean {
  // A refused session says nothing of the message.
  if (isRefusal(error)) return !leavesOpen(error) && error.method.startsWith('group.');
  const codes = ['not_a_member', 'not_permitted', 'invalid_input', 'no_relay'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Whether the message cannot be sealed now: it waits, with all later ones. */
export function isBlocked(error: unknown): boolean {
  const codes = ['group_blocked', 'group_behind', 'group_key_missing'] as const;
  return codes.some((code) => isClientError(error, code));
}

/**
 * Submits a waiting message until the host accepts it, sealed again if its epoch is over. If
 * several programs do so at once, the first change of the row wins.
 */
async function deliver(
  core: AccountCore,
  { groupId, key }: { readonly groupId: string; readonly key: string },
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const value = await core.store.read((tx) => groupOutbox.get(tx, key));
    if (value === undefined) return;
    if (value.envelope === undefined) await sealWaiting(core, groupId, { key, value }, signal);
    const sealed = await core.store.read((tx) => groupOutbox.get(tx, key));
    if (sealed?.envelope === undefined) return;
    try {
      return await submit(core, { key, value: sealed }, signal);
    } catch (error) {
      // Only a refusal proves that the message was not accepted.
      const isAgain = isRefusal(error, 'state_conflict', 'clock_skew') && attempt < attempts;
      if (!isAgain || error.method !== method) throw error;
      await prepareRetry(core, { groupId, error }, signal);
      await sealAnew(core, groupId, { key, value: sealed }, signal);
    }
  }
}

/** @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
async function submit(
  core: AccountCore,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<void> {
  const { envelope } = pending.value;
  if (envelope === undefined) return;
  const { group_id } = envelope;
  const row = await core.store.read((tx) => groupRow(tx, group_id));
  if (row === undefined) throw new ClientError('not_a_member', `${group_id} is not known here`);
  const { sequence } = await core.relay(row.relay_id).call(method, envelope, { signal });
  await core.store.write(async (tx) => {
    if (!(await isStillPending(tx, pending))) return;
    await endMessage(tx, group_id, { pending, status: 'target_accepted', sequence });
  });
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

/**
 * Sends what waits for a group, or gives it up if the account cannot send to it any more.
 * @returns whether a message was sent, so that the group should be read again
 */
export async function flushOrGiveUp(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { row, waiting } = await core.store.read(async (tx) => ({
    row: await groupRow(tx, groupId),
    waiting: await pendingOf(tx, groupOutbox, groupId),
  }));
  if (waiting.length === 0) return false;
  const reason =
    row?.standing === 'ended'
      ? new ClientError('not_a_member', 'the account is no member any more')
      : new ClientError('not_permitted', 'the group is closed');
  if (row?.standing === 'ended' || row?.facts?.status === 'closed') {
    for (const pending of waiting) {
      await giveUp(core, groupId, { pending, error: reason });
      core.sender.answered(firstIdOf(pending.value), reason);
    }
  } else if (row?.standing === 'member') {
    const run = core.sender.run(groupLane(groupId), sendWaitingToGroup(core, groupId));
    await untilAborted(run, signal).catch((error: unknown) => {
      if (!isBlocked(error)) throw error;
    });
    return true;
  }
  return false;
}

/** Stores that a message is not sent, unless it is sealed: it may have arrived. */
export async function giveUpUnsealed(
  core: AccountCore,
  groupId: string,
  { pending, error }: { readonly pending: PendingMessage; readonly error: unknown },
): Promise<void> {
  await core.store.write(async (tx) => {
    const latest = await groupOutbox.get(tx, pending.key);
    if (latest?.envelope !== undefined) return;
    await endMessage(tx, groupId, { pending, ...endedBy(error) });
  });
}

/** Stores that a message is not sent. */
async function giveUp(
  core: AccountCore,
  groupId: string,
  { pending, error }: { readonly pending: PendingMessage; readonly error: unknown },
): Promise<void> {
  await core.store.write((tx) => endMessage(tx, groupId, { pending, ...endedBy(error) }));
}
