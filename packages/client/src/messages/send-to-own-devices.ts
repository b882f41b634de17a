/** Sends messages to the account's other devices, as self-delivery (03 §17, 05 §16). */
import { currentDevices } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
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
  const { name, content, tasks, signal } = message;
  if (content === undefined || !(await hasOtherDevices(core))) return await dropTasks(core, tasks);
  await sendMessage(core, {
    to: core.account,
    content: { ...content, $type: core.network.type(name) },
    purpose: { kind: 'duty', duties: tasks },
    includeThisDevice: false,
    signal,
    inTransaction: async (tx) => {
      for (const task of tasks) await removeTask(tx, task);
    },
  });
}

async function hasOtherDevices(core: AccountCore): Promise<boolean> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return true;
  const current = currentDevices(core.network, state, unixSeconds(core.clock));
  return current.size > (current.has(core.device.deviceId) ? 1 : 0);
}
