/**
 * Sends messages to groups: in the order of writing, sealed for the epoch of their turn, sent
 * unchanged (05 §13.28, §14.1).
 */
import { endsUnanswered, leavesSealedOpen } from '../../connect/backoff.ts';
import { untilAborted } from '../../connect/deadline.ts';
import type { CallOptions } from '../../connect/relay-connection.ts';
import type { AccountCore } from '../../core.ts';
import { ClientError, isClientError, isRefusal } from '../../errors.ts';
import type { StoreReader } from '../../store/index.ts';
import { type Pending, pendingOf } from '../../sync/outbox.ts';
import type { SendWork } from '../../sync/sender.ts';
import { endedBy } from '../../sync/write-outcomes.ts';
import { type GroupRow, groupRow } from '../group-rows.ts';
import {
  endMessage,
  firstIdOf,
  type GroupOutboxRow,
  groupOutbox,
  isStillPending,
  type PendingMessage,
} from '../outbox.ts';
import { refreshGroup, shouldReadGroup } from './read-group.ts';
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
        const age = await ageOf(core, head.key);
        if (!isUndeliverable(error, age)) throw error;
        // It is in the group if it was accepted before, with its answer lost.
        if (endsUnanswered(error, age)) await refreshGroup(core, groupId, signal);
        const left = await core.store.read((tx) => groupOutbox.get(tx, head.key));
        if (left !== undefined) {
          await giveUp(core, groupId, { pending: head, error });
          failure = error;
        }
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

/** Returns for how many seconds a message is sealed, by its host's clock; 0 if it is not. */
async function ageOf(core: AccountCore, key: string): Promise<number> {
  const { envelope, row } = await core.store.read(async (tx) => {
    const { envelope } = (await groupOutbox.get(tx, key)) ?? {};
    return { envelope, row: envelope && (await groupRow(tx, envelope.group_id)) };
  });
  if (envelope === undefined || row === undefined) return 0;
  return core.relay(row.relay_id).relayClock.now() - envelope.created_at;
}

/** Whether an error proves that the message will never be delivered. */
function isUndeliverable(error: unknown, age: number): boolean {
  if (isRefusal(error)) return !leavesSealedOpen(error, age) && error.method.startsWith('group.');
  const codes = ['not_a_member', 'not_permitted', 'invalid_input', 'no_relay'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Whether the message cannot be sealed now: it waits, with all later ones. */
export function isBlocked(error: unknown): boolean {
  const codes = ['group_blocked', 'group_behind', 'group_key_missing'] as const;
  return codes.some((code) => isClientError(error, code));
}

/** Whether the host takes no more messages now, perhaps of this group only: it is read all the same. */
function isGroupFull(error: unknown): boolean {
  return isRefusal(error, 'rate_limited') && error.method === method;
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
  // Whether every request with the envelope was refused: an earlier run may have sent it too.
  let isNew = false;
  for (let attempt = 1; ; attempt += 1) {
    const value = await core.store.read((tx) => groupOutbox.get(tx, key));
    if (value === undefined) return;
    if (value.envelope === undefined) {
      isNew = await sealWaiting(core, groupId, { key, value }, signal);
    }
    const sealed = await core.store.read((tx) => groupOutbox.get(tx, key));
    if (sealed?.envelope === undefined) return;
    try {
      const onDoubt = () => {
        isNew = false;
      };
      return await submit(core, { key, value: sealed }, { signal, onDoubt });
    } catch (error) {
      // Only a refusal proves that the message was not accepted.
      const isAgain = isRefusal(error, 'state_conflict', 'clock_skew') && attempt < attempts;
      if (!isAgain || error.method !== method) throw error;
      await prepareRetry(core, { groupId, error }, signal);
      if (!isNew && (await mayBeAccepted(core, { key, value: sealed }, signal))) throw error;
      isNew = await sealAnew(core, groupId, { key, value: sealed }, signal);
    }
  }
}

/**
 * Whether a refused message that the group does not have may have been accepted before, with its
 * answer lost: the host was put back to an earlier state since (02 §11.2), or has removed it (05 §11.2).
 */
async function mayBeAccepted(
  core: AccountCore,
  pending: PendingMessage,
  signal: AbortSignal,
): Promise<boolean> {
  const { envelope, restoredAt } = pending.value;
  const row = await core.store.read(async (tx) =>
    envelope !== undefined && (await isStillPending(tx, pending))
      ? await groupRow(tx, envelope.group_id)
      : undefined,
  );
  if (row === undefined || envelope === undefined) return false;
  const host = core.relay(row.relay_id);
  const connection = await host.authenticated(signal);
  const isRestored = restoredAt !== undefined && restoredAt !== (connection.restoredAt ?? 0);
  const { groupMessageRetention = 0 } = connection;
  const isRemoved = envelope.created_at + groupMessageRetention <= host.relayClock.relayNow();
  return isRestored || isRemoved || row.rollback === true;
}

/** @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
async function submit(
  core: AccountCore,
  pending: PendingMessage,
  options: CallOptions,
): Promise<void> {
  const { envelope } = pending.value;
  if (envelope === undefined) return;
  const { group_id } = envelope;
  const row = await core.store.read((tx) => groupRow(tx, group_id));
  if (row === undefined) throw new ClientError('not_a_member', `${group_id} is not known here`);
  const { sequence } = await core.relay(row.relay_id).call(method, envelope, options);
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
  }
  // Also after `clock_skew`: a repeat whose result the host forgot may have been accepted.
  await refreshGroup(core, groupId, signal);
}

/**
 * Sends what waits for a group, or gives it up if the account cannot send to it any more.
 * @returns whether a message was sent now, so that the group should be read again
 */
export async function flushOrGiveUp(
  core: AccountCore,
  groupId: string,
  options: { readonly signal: AbortSignal; readonly sendsInBackground: boolean },
): Promise<boolean> {
  const { row, waiting } = await core.store.read(async (tx) => ({
    row: await groupRow(tx, groupId),
    waiting: await pendingOf(tx, groupOutbox, groupId),
  }));
  if (waiting.length === 0) return false;
  if (row !== undefined && hasEnded(row)) {
    for (const pending of waiting) await giveUpEnded(core, { row, pending });
  } else if (row?.standing === 'member') {
    const work = sendWaitingToGroup(core, groupId);
    if (options.sendsInBackground) {
      // The host sends a hint of what it accepts.
      core.sender.start(groupLane(groupId), work);
      return false;
    }
    const run = core.sender.run(groupLane(groupId), work);
    await untilAborted(run, options.signal).catch((error: unknown) => {
      if (!isBlocked(error) && !isGroupFull(error)) throw error;
    });
    return true;
  }
  return false;
}

/** Whether the account cannot send to a group any more. */
function hasEnded({ standing, facts }: GroupRow): boolean {
  return standing === 'ended' || facts?.status === 'closed';
}

/**
 * Gives up what waits for groups that have ended and are not read any more: a program may have ended
 * before it did.
 */
export async function giveUpInEndedGroups(core: AccountCore): Promise<void> {
  const found = await core.store.read(async (tx) => {
    const ended: { readonly row: GroupRow; readonly pending: PendingMessage }[] = [];
    for (const pending of await groupOutbox.list(tx)) {
      const row = await groupRow(tx, pending.key.slice(0, pending.key.lastIndexOf('/')));
      if (row !== undefined && hasEnded(row) && !shouldReadGroup(row)) ended.push({ row, pending });
    }
    return ended;
  });
  for (const ended of found) await giveUpEnded(core, ended);
}

async function giveUpEnded(
  core: AccountCore,
  { row, pending }: { readonly row: GroupRow; readonly pending: PendingMessage },
): Promise<void> {
  const error = endOf(row, { isSealed: pending.value.envelope !== undefined });
  await giveUp(core, row.group_id, { pending, error });
  core.sender.answered(firstIdOf(pending.value), error);
}

/**
 * Returns why a message to an ended group is given up. A closed group was read up to its end, and
 * what arrived was found there; after a removal nothing can be read, and no repeat is answered (05
 * §13.28).
 */
function endOf({ standing }: GroupRow, { isSealed }: { readonly isSealed: boolean }): ClientError {
  if (standing !== 'ended') return new ClientError('not_permitted', 'the group is closed');
  const doubt = isSealed ? '; whether the message arrived before is not known' : '';
  return new ClientError('not_a_member', `the account is no member any more${doubt}`);
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
