/** Sends the messages that wait, in the order of each conversation (04 §12, §15). */
import { homeRelay, isWrongHome } from '../accounts/home-relay.ts';
import { leavesMessageOpen, leavesOpen } from '../connect/backoff.ts';
import { untilAborted } from '../connect/deadline.ts';
import type { AccountCore } from '../core.ts';
import { isRefusal, RelayMisbehaviour, RelayRefused } from '../errors.ts';
import { pendingOf } from '../sync/outbox.ts';
import { restoredAtOf } from '../sync/reach-relay.ts';
import type { SendWork } from '../sync/sender.ts';
import { askFormerRelay, submitAfterMove } from './flush-outbox.ts';
import {
  ensureAdopted,
  firstId,
  headOf,
  messageQueue,
  type QueuedMessage,
  waitingConversations,
} from './message-queue.ts';
import { type OutboxRow, outbox } from './outbox.ts';
import { sealQueued } from './seal-queued.ts';
import { isResealable, isUnsettled, storeRejection, submit } from './submit.ts';

/** Conversations whose messages are sent at the same time. */
const concurrency = 16;

/** Returns the name of a conversation's run. */
export function laneOf(to: string): string {
  return `person/${to}`;
}

/**
 * Returns the work that sends what waits for one account, oldest first. A message that is refused
 * for good is given up, and the next one goes on; any other failure ends the run.
 */
export function sendWaiting(core: AccountCore, to: string): SendWork {
  return async (signal) => {
    for (;;) {
      signal.throwIfAborted();
      const head = await core.store.read((tx) => headOf(tx, to));
      if (head === undefined) return;
      let failure: unknown;
      try {
        await deliver(core, head, signal);
      } catch (error) {
        const left = await core.store.read((tx) => headOf(tx, to));
        if (left !== undefined && firstId(left.value) === firstId(head.value)) {
          // The answer to a consent has the grant that the messages before it wait for.
          const waiting = await core.store.read((tx) => pendingOf(tx, messageQueue, to));
          const consent = waiting.find(({ value }) => value.purpose.kind === 'consent');
          if (consent === undefined || !isRefusal(error, 'forbidden')) throw error;
          await deliver(core, consent, signal);
          core.sender.answered(firstId(consent.value));
          continue;
        }
        failure = error;
      }
      core.sender.answered(firstId(head.value), failure);
    }
  };
}

async function deliver(core: AccountCore, head: QueuedMessage, signal: AbortSignal): Promise<void> {
  const { message_id } = head.value;
  const sealed = await core.store.read((tx) => outbox.get(tx, message_id));
  let row = sealed ?? (await sealQueued(core, head, { signal }));
  while (row !== undefined) {
    try {
      return await submitAtHome(core, row, signal);
    } catch (error) {
      if (!isUnsettled(row, error)) throw error;
      const accepted = await mayBeAccepted(core, row, { error, signal });
      if (accepted !== 'no' || !isResealable(row)) {
        await storeRejection(core, { ...row, accepted: accepted === 'yes' }, error);
        throw error;
      }
      if (isRefusal(error, 'clock_skew')) (await core.home()).relayClock.adopt();
      row = await sealQueued(core, head, { replaced: row, signal });
    }
  }
}

/** Whether a refused message may have been accepted before, with its answer lost. */
async function mayBeAccepted(
  core: AccountCore,
  row: OutboxRow,
  { error, signal }: { readonly error: unknown; readonly signal: AbortSignal },
): Promise<'yes' | 'no' | 'unknown'> {
  if (isRefusal(error, 'message_expired')) {
    const { acceptedBefore } = await core.later();
    return await acceptedBefore(core, row, signal);
  }
  // A former relay was asked before the message was sent to this one.
  if (row.relayId !== (await homeRelay(core, core.account))) return 'no';
  // A relay compares with what it accepted first; one that was restored may have lost that.
  const restoredAt = await restoredAtOf(core, row.relayId, signal);
  return (row.restoredAt ?? restoredAt) === restoredAt ? 'no' : 'unknown';
}

async function submitAtHome(core: AccountCore, row: OutboxRow, signal: AbortSignal): Promise<void> {
  if (row.relayId !== (await homeRelay(core, core.account))) {
    return await askFormerRelay(core, row, signal);
  }
  try {
    await submit(core, row, signal);
  } catch (error) {
    if (!isWrongHome(error)) throw error;
    await submitAfterMove(core, row, { refusal: error, signal });
  }
}

/**
 * Sends what waits in all conversations; one that is stuck delays no other.
 * @throws what concerns more than one recipient; the signal's reason
 */
export async function sendAllWaiting(core: AccountCore, signal: AbortSignal): Promise<void> {
  const { store } = core;
  await ensureAdopted(store);
  const waiting = await store.read(waitingConversations);
  const failures: unknown[] = [];
  const worker = async () => {
    for (let to = waiting.shift(); to !== undefined; to = waiting.shift()) {
      try {
        await untilAborted(core.sender.run(laneOf(to), sendWaiting(core, to)), signal);
      } catch (error) {
        signal.throwIfAborted();
        const isOwn = concernsRecipient(error, to !== core.account) || isStateRefusal(error);
        if (!isOwn) failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  if (failures.length > 0) throw failures[0];
}

/**
 * Has what waits sent in the background, so that a message that is stuck delays nothing that arrives.
 * What fails stays stored, and is sent again when everything is read again.
 */
export async function startAllWaiting(core: AccountCore): Promise<void> {
  core.sender.start('person', (signal) => sendAllWaiting(core, signal));
}

/** Whether what waits is refused for as long as a state lasts: reading goes on without it. */
function isStateRefusal(error: unknown): boolean {
  return isRefusal(error) && leavesMessageOpen(error) && !leavesOpen(error);
}

/** Whether only one contact's devices could not be read: its relay may be away, or lie. */
function concernsRecipient(error: unknown, hasContact: boolean): boolean {
  const isAnswer = error instanceof RelayRefused || error instanceof RelayMisbehaviour;
  return hasContact && isAnswer && error.method === 'device.state.resolve';
}
