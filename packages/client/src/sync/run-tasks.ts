/**
 * Runs pending tasks: messages to contacts and to the own devices (03 §17, §18; 04 §7.4; 05 §16).
 */
import { syncOwnProfile } from '../accounts/profiles.ts';
import { leavesMessageOpen } from '../connect/backoff.ts';
import { untilAborted } from '../connect/deadline.ts';
import {
  isContactTask,
  isRecordTask,
  runContactTask,
  sendContactRecords,
} from '../contacts/contact-tasks.ts';
import type { AccountCore } from '../core.ts';
import { isClientError, isRefusal } from '../errors.ts';
import { isGroupTask, runGroupTask } from '../groups/keys/own-device-sync.ts';
import { dropTasks, type PendingTask, pendingTasks } from './tasks.ts';

/** Name of the run of pending tasks: one at a time, so that none is done twice. */
const lane = 'tasks';

/** Runs pending tasks in the background. What fails stays, until everything is read again. */
export function startTasks(core: AccountCore): void {
  core.sender.start(lane, (signal) => runEach(core, signal));
}

/**
 * Runs every pending task once. A task that fails temporarily stays; one that is refused for good
 * is dropped. A failure towards one contact does not delay the tasks of others.
 *
 * @throws RelayUnreachable, RelayMisbehaviour
 */
export async function runTasks(core: AccountCore, signal: AbortSignal): Promise<void> {
  // The run may be shared: another caller's end does not end it.
  await untilAborted(
    core.sender.run(lane, (closed) => runEach(core, closed)),
    signal,
  );
}

async function runEach(core: AccountCore, signal: AbortSignal): Promise<void> {
  const tasks = (await core.store.read((tx) => pendingTasks.list(tx))).map(({ value }) => value);
  const records = tasks.filter(isRecordTask);
  await attempt(core, records, () => sendContactRecords(core, records, signal));
  for (const task of tasks) {
    if (!isRecordTask(task)) await attempt(core, [task], () => runTask(core, task, signal));
  }
}

async function runTask(core: AccountCore, task: PendingTask, signal: AbortSignal): Promise<void> {
  if (isGroupTask(task)) return await runGroupTask(core, task, signal);
  if (task.kind === 'publish-profile') {
    await syncOwnProfile(core, signal);
    return await dropTasks(core, [task]);
  }
  if (task.kind !== 'send-account-state') return await runContactTask(core, task, signal);
  const { sendAccountState } = await core.later();
  await sendAccountState(core, task, signal);
}

async function attempt(
  core: AccountCore,
  tasks: readonly PendingTask[],
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (isRefusal(error) && leavesMessageOpen(error)) return;
    // A contact can sign one state for us and another for its relay, and so make an honest relay
    // look like a lying one. Nothing of the answer was used; the task is retried later.
    const isOpen = tasks.some((task) => isContactTask(task) || task.kind === 'publish-profile');
    if (isClientError(error, 'relay_misbehaviour') && isOpen) return;
    const isFinal = isRefusal(error) || isClientError(error, 'no_recipient_device');
    if (!isFinal) throw error;
    await dropTasks(core, tasks);
  }
}
