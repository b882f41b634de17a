/** Messages to the account's other devices, as self-delivery (03 §17, 05 §16). */
import { currentDevices } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { type Duty, removeDuty } from '../sync/tasks.ts';
import { send } from './send-message.ts';

/**
 * Sends an object to the other devices, and settles what was owed by it. Where there is no other
 * device, or nothing to say, nothing is owed any more.
 */
export async function toOwnDevices(
  core: AccountCore,
  message: {
    /** Type of the object behind the service word. */
    readonly name: string;
    readonly content?: JsonObject;
    readonly due: readonly Duty[];
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { name, content, due, signal } = message;
  if (content === undefined || !(await hasOtherDevices(core))) return await forget(core, due);
  await send(core, {
    to: core.account,
    content: { ...content, $type: core.network.type(name) },
    purpose: { kind: 'duty', duties: due },
    toThisDevice: false,
    signal,
    along: async (tx) => {
      for (const duty of due) await removeDuty(tx, duty);
    },
  });
}

/** Drops duties that nothing is to be done for. */
export async function forget(core: AccountCore, due: readonly Duty[]): Promise<void> {
  await core.store.write(async (tx) => {
    for (const duty of due) await removeDuty(tx, duty);
  });
}

async function hasOtherDevices(core: AccountCore): Promise<boolean> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return true;
  const current = currentDevices(core.network, state, unixSeconds(core.clock));
  return current.size > (current.has(core.device.deviceId) ? 1 : 0);
}
