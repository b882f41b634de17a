/** Sends messages to the account's other devices, as self-delivery (03 §17, 05 §16). */
import { currentDevices } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import type { StoreWriter } from '../store/index.ts';
import { dropTasks, type PendingTask, removeTask } from '../sync/tasks.ts';
import { sendMessage } from './send-message.ts';

/**
 * Sends an object to the account's other devices and removes the tasks it completes. If there is
 * no other device or no content, the tasks are dropped.
 */
export async function sendToOwnDevices(
  core: AccountCore,
  message: {
    /** Type of the object, without the service word. */
    readonly name: string;
    readonly content?: JsonObject;
    readonly tasks: readonly PendingTask[];
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { name, content, ...rest } = message;
  const typed = content && { ...content, $type: core.network.type(name) };
  await sendObjectToOwnDevices(core, { ...rest, content: typed });
}

/** Sends a complete object, with its `$type`, as {@link sendToOwnDevices} does. */
export async function sendObjectToOwnDevices(
  core: AccountCore,
  message: {
    readonly content: JsonObject | undefined;
    /** IDs of the only devices that get it. */
    readonly devices?: readonly string[];
    readonly tasks: readonly PendingTask[];
    /** Tasks that are enqueued if the message is refused in the end; `tasks` by default. */
    readonly again?: readonly PendingTask[];
    /** Runs in the transaction that stores the message. */
    readonly inTransaction?: (tx: StoreWriter) => Promise<void>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { content, devices, tasks, again = tasks, inTransaction, signal } = message;
  if (content === undefined || !(await hasOtherDevices(core))) return await dropTasks(core, tasks);
  await sendMessage(core, {
    to: core.account,
    content,
    purpose: { kind: 'duty', duties: again },
    includeThisDevice: false,
    ...(devices !== undefined && { devices }),
    signal,
    inTransaction: async (tx) => {
      for (const task of tasks) await removeTask(tx, task);
      await inTransaction?.(tx);
    },
  });
}

async function hasOtherDevices(core: AccountCore): Promise<boolean> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return true;
  const current = currentDevices(core.network, state, unixSeconds(core.clock));
  return current.size > (current.has(core.device.deviceId) ? 1 : 0);
}
